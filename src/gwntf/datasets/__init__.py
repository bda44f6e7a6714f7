"""Data sets: tensors with samples first and their labels, and spectra with known references.

May import the subpackages below `estimators`. Start with `images`: the digits of scikit-learn and the research data
sets, which are read from disk or downloaded (`remote`). `gamma` and `nmr` are measured spectra, `example` a small
synthetic set that is part of the package. `synthetic` generates tensors with known factors, `drift` spectra whose peaks
drift.
"""

from gwntf.datasets.drift import DriftingSpectra, make_drifting_spectra
from gwntf.datasets.example import ExampleSpectra, load_example_spectra
from gwntf.datasets.gamma import GammaSpectra, load_gamma_spectra
from gwntf.datasets.images import load_coil20, load_digits_tensor, load_pie_pose27
from gwntf.datasets.nmr import NMRMixture, load_nmr_mixtures
from gwntf.datasets.synthetic import make_kruskal_tensor

__all__ = [
    "DriftingSpectra",
    "ExampleSpectra",
    "GammaSpectra",
    "NMRMixture",
    "load_coil20",
    "load_digits_tensor",
    "load_example_spectra",
    "load_gamma_spectra",
    "load_nmr_mixtures",
    "load_pie_pose27",
    "make_drifting_spectra",
    "make_kruskal_tensor",
]
