"""What can go wrong with data. Each message is one sentence that says what to do."""


class DataError(Exception):
    """A data set cannot be had."""


class UnknownDataError(DataError, ValueError):
    """There is no data set of that name."""


class MissingDataError(DataError, FileNotFoundError):
    """A file of a data set is not where it was looked for."""


class DamagedDataError(DataError, ValueError):
    """A file of a data set cannot be read, or is not what it should be."""


class DownloadError(DataError, OSError):
    """A data set could not be downloaded or written."""
