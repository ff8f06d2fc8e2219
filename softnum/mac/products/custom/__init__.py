"""Products in custom formats and by units of the user's."""
