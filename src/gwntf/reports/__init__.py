"""Self-contained HTML reports.

May import `plots`, `experiments` and everything below. Start with `page`, the skeleton that every report
shares; `table_report` shows a table of methods.
"""

from gwntf.reports.table_report import summary_chart, table_report

__all__ = ["summary_chart", "table_report"]
