"""A fusion for people to look at: its numbers, and one HTML file made of them."""

from modelweld.report.group_table import GroupTable
from modelweld.report.numbers import numbers_of
from modelweld.report.page import page_of, write_report

__all__ = ["GroupTable", "numbers_of", "page_of", "write_report"]
