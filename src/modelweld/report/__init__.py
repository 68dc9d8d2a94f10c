"""A fusion for people to look at: its numbers, one HTML file made of them, and a few lines of text."""

from modelweld.report.group_table import GroupTable
from modelweld.report.numbers import numbers_of
from modelweld.report.page import page_of, write_report
from modelweld.report.text import summary

__all__ = ["GroupTable", "numbers_of", "page_of", "summary", "write_report"]
