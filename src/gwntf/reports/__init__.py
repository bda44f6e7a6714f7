"""Self-contained HTML reports.

May import `plots`, `experiments` and everything below. Start with `page`, the HTML that every report is made of;
`table_report` shows a table of methods, `model_report` one model, `unmixing_report`
mixtures of known parts; `facts` describes a model in words.
"""

from gwntf.reports.facts import describe, ending, factorization_of, set_parameters
from gwntf.reports.model_report import model_report
from gwntf.reports.table_report import summary_chart, table_report
from gwntf.reports.unmixing_report import UnmixingPage, unmixing_report

__all__ = [
    "UnmixingPage",
    "describe",
    "ending",
    "factorization_of",
    "model_report",
    "set_parameters",
    "summary_chart",
    "table_report",
    "unmixing_report",
]
