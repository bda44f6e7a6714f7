"""The algorithm as the paper prints it, as an estimator; the library has it in the loss alone."""

from __future__ import annotations

from dataclasses import replace

from gwntf import GWNTF


class PrintedGWNTF(GWNTF):
    """GWNTF whose factors move one after the other, by the rule that the paper prints."""

    def _transport_loss(self):
        return replace(super()._transport_loss(), update="paper")
