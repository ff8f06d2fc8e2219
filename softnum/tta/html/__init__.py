"""The report of a study as one HTML file."""

from softnum.tta.html.report import Report, export_report, load_report, write_report

__all__ = ["Report", "export_report", "load_report", "write_report"]
