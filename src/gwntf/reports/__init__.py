"""Self-contained HTML reports.

May import `plots`, `experiments` and everything below. Start with `page`, the HTML that every report
is made of; `table_report` shows a table of methods, `model_report` one model.
"""

from gwntf.reports.model_report import ending, model_report, set_parameters
from gwntf.reports.table_report import summary_chart, table_report

__all__ = ["ending", "model_report", "set_parameters", "summary_chart", "table_report"]
