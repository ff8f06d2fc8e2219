"""Time, cost and energy to a loss on systems that nobody has: a scaling law, a step's time, failures and prices."""

from softnum.tta.forecasts.factors import Amount
from softnum.tta.forecasts.forecast import Forecast, Given, forecast
from softnum.tta.forecasts.results import FORECAST_SCHEMA, is_forecast, read_forecasts, write_forecasts
from softnum.tta.forecasts.search import Found, SharedStep, find_step, read_ways, shared_step

__all__ = [
    "FORECAST_SCHEMA",
    "Amount",
    "Forecast",
    "Found",
    "Given",
    "SharedStep",
    "find_step",
    "forecast",
    "is_forecast",
    "read_forecasts",
    "read_ways",
    "shared_step",
    "write_forecasts",
]
