"""The one model that has to give all answers of a run."""

from jevexp.core.record import Record


class SessionModel:
    """Holds every answer against the model of the session.

    Not a rule of the benchmark: an answer by another model is recorded as it came, and ends the
    run. Where nobody says beforehand who will answer, the first answer decides: an alias that a
    service moves in the middle of a run would mix two models in one number.

    Args:
        name: the model as the provider named it before the first request; None where it did not.
    """

    def __init__(self, name: str | None) -> None:
        self._name = name

    def accepts(self, record: Record) -> bool:
        """Whether the record's model is the session's; a failed attempt has no say."""
        if not record.ok:
            return True
        if self._name is None:
            self._name = record.model
        return record.model == self._name
