"""Prepares a kernel for the next cell of E2B's code interpreter. The variable env has what the
cell's request adds to the environment.

The environment first becomes what it was before the last request. E2B's clients also get values in
forms that IPython does not have: lists and dicts as JSON, the columns of a data frame, and, if the
package e2b_charts is installed, what a figure of matplotlib shows.
"""

import json
import math
import os
import sys

from IPython import get_ipython
from IPython.core.formatters import BaseFormatter, JSONFormatter
from traitlets import ObjectName, Unicode

MOST = 1 << 20  # bytes of a value in one of these forms


def small(value):
    """Returns value, or None if it cannot be sent."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if len(text) <= MOST else None


def plain(value):
    """Returns a value of a data frame as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    iso = getattr(value, "isoformat", None)
    return iso() if iso else str(value)


class JSON(JSONFormatter):
    def __call__(self, value):
        if type(value) in (dict, list):
            return small(value)
        return super().__call__(value)


class Data(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict

    def __call__(self, value):
        pandas = sys.modules.get("pandas")  # without it there is no data frame
        if pandas and isinstance(value, pandas.DataFrame):
            try:
                columns = value.to_dict(orient="list")
                return small({str(name): [plain(v) for v in columns[name]] for name in columns})
            except Exception:  # its text and HTML are shown all the same
                return None
        return super().__call__(value)


class Chart(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def __call__(self, value):
        figure = sys.modules.get("matplotlib.figure")
        if figure and isinstance(value, figure.Figure):
            try:
                from e2b_charts import chart_figure_to_dict
                return small(chart_figure_to_dict(value))
            except Exception:  # the figure itself is shown all the same
                return None
        return super().__call__(value)


shell = get_ipython()
if not hasattr(shell, "sandshell_e2b"):
    shell.sandshell_e2b = {}  # what the variables of the last request were before
    for kind in (JSON, Data, Chart):
        formatter = kind(parent=shell.display_formatter)
        shell.display_formatter.formatters[formatter.format_type] = formatter
before = shell.sandshell_e2b
while before:
    name, value = before.popitem()
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
for name in env:  # noqa: F821
    before[name] = os.environ.get(name)
    os.environ[name] = env[name]  # noqa: F821
