"""Every row of Table 3 on any data, into one table beside the paper's."""
