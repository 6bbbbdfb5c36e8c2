"""What can go wrong, by what it means for the caller. Each text says what happened, where, and what to do."""

from pilot_client.models import Problem, ProblemErrors, WholeItem


class PilotError(Exception):
    """The service did not do it.

    `problem` is what it answered (RFC 9457), if it answered that way. Branch on `code`, quote `request_id` to the
    operator.
    """

    remedy = ""

    def __init__(
        self,
        what: str,
        *,
        operation: str | None = None,
        status: int | None = None,
        problem: Problem | None = None,
        retry_after: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(what)
        self.operation = operation
        self.status = status
        self.problem = problem
        self.retry_after = retry_after
        self.idempotency_key = idempotency_key

    @property
    def code(self) -> str | None:
        """The stable code, such as `separation_of_duties`."""
        return self.problem.get("code") if self.problem else None

    @property
    def detail(self) -> str | None:
        """A sentence for people."""
        return self.problem.get("detail") if self.problem else None

    @property
    def faults(self) -> list[ProblemErrors]:
        """What is wrong with the request, each with a JSON pointer to its place."""
        return self.problem.get("errors", []) if self.problem else []

    @property
    def request_id(self) -> str | None:
        """What the operator finds the request by."""
        return self.problem.get("request_id") if self.problem else None


class Unauthorized(PilotError):
    """401: the token is missing, wrong, expired or revoked."""

    remedy = "check where the token comes from, and whether it is still valid"


class Forbidden(PilotError):
    """403: this actor may not do it. Someone else has to."""

    remedy = "someone else has to do it"


class NotFound(PilotError):
    """404: there is no such thing, or no such operation."""

    remedy = "check the id or the name"


class Conflict(PilotError):
    """409 or 412: the actor may do this, but not now, or not on this content or version."""

    remedy = "load the item again and look at its actions"


class Invalid(PilotError):
    """400, 405, 413, 414, 415, 422 or 431: the request has to be changed. `faults` says where."""

    remedy = "correct the request"


class RateLimited(PilotError):
    """429: too many requests. `retry_after` says for how many seconds to wait."""

    remedy = "wait, and send fewer requests"


class Unavailable(PilotError):
    """5xx, or no answer at all. After a write, it is not known whether it was recorded."""

    remedy = "try again later"


class NotYet(PilotError, TimeoutError):
    """`wait` ended before the item had come so far. `item` is how it was seen last."""

    def __init__(self, what: str, item: WholeItem) -> None:
        super().__init__(what, operation="wait")
        self.item = item


class NoLongerPossible(PilotError):
    """What `wait` waited for can no longer be reached: rejected, withdrawn, revoked or expired."""

    def __init__(self, what: str, item: WholeItem) -> None:
        super().__init__(what, operation="wait")
        self.item = item


class DigestRequired(PilotError, ValueError):
    """A decision was to be made without saying on which content. Nothing was sent."""


_BY_STATUS: dict[int, type[PilotError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    409: Conflict,
    412: Conflict,
    413: Invalid,
    414: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
    431: Invalid,
}


def error_of(
    operation: str,
    route: str,
    status: int,
    problem: Problem | None,
    *,
    retry_after: float | None = None,
    idempotency_key: str | None = None,
) -> PilotError:
    """The error for an answer that is not a success."""
    kind = Unavailable if status >= 500 else _BY_STATUS.get(status, PilotError)
    if problem is None:
        said = "not as a Pilot service does"
    else:
        said = f"{problem['code']}: {problem.get('detail', '')}"
        said += "".join(f"\n  {fault['pointer'] or '/'}: {fault['detail']}" for fault in problem.get("errors", []))
        if request := problem.get("request_id"):
            said += f"\n  (request {request})"
    remedy = kind.remedy
    if 300 <= status < 400:
        remedy = "give the address of the service itself; redirections are not followed, because of the token"
    elif retry_after is not None:
        remedy = f"wait {retry_after:g} s, then try again"
    if status >= 500 and idempotency_key:
        remedy = unknown(idempotency_key)
    text = f"{operation}: {route} was answered with {status}, {said}" + (f"\n  {remedy}" if remedy else "")
    return kind(
        text,
        operation=operation,
        status=status,
        problem=problem,
        retry_after=retry_after,
        idempotency_key=idempotency_key,
    )


def unknown(key: str) -> str:
    """What to do after a write whose answer is lost."""
    return (
        "it is not known whether this was recorded; the same call with "
        f"idempotency_key={key!r} repeats it safely within 24 hours"
    )
