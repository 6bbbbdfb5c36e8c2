"""One method for each operation of the API, blocking and not.

Generated from docs/reference/openapi.json by `python3 clients/python/generate.py`; changes belong there.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast

from pilot_client.asks import Ask, Asks, AsyncAsks, Pages, key_of, segment, segments
from pilot_client.models import (
    Actors,
    ConsoleSettings,
    Content,
    Cosignatures,
    CredentialId,
    Credentials,
    Days,
    Digest,
    Documents,
    Events,
    Figures,
    Health,
    History,
    Index,
    Item,
    ItemId,
    ItemSummary,
    ItemsLimit,
    ItemsPage,
    Limit,
    Me,
    Nodes,
    PermitIssuer,
    PermitKeys,
    PermitToken,
    ProofLimit,
    Proofs,
    ProtectedResource,
    Revocation,
    Session,
    ShortText,
    Sort,
    Time,
    Transition,
    Transitions,
    View,
    Webhook,
    Webhooks,
    WholeItem,
    Workflow,
    Workflows,
)


class Operations(Asks):
    """One method for each operation."""

    def add_comment(self, id: ItemId, *, text: str, idempotency_key: str | None = None) -> Transition:
        """Comment on an item.

        For any valid credential. Calls `POST /v1/items/{id}/comments`.

        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "add_comment",
            "POST",
            f"/v1/items/{segment(id)}/comments",
            accept="application/json",
            body={"text": text},
            key=key_of(idempotency_key),
        )
        return cast("Transition", self._json(ask))

    def create_item(
        self,
        *,
        title: str,
        workflow: str,
        payload: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> WholeItem:
        """Create an item as a draft.

        For initiator. Calls `POST /v1/items`.

        `payload`: What the workflow's payload_schema requires; must be complete when submitted, at most 64 KiB.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "create_item",
            "POST",
            "/v1/items",
            accept="application/json",
            body={"payload": payload, "title": title, "workflow": workflow},
            key=key_of(idempotency_key),
        )
        return cast("WholeItem", self._json(ask))

    def edit_item(
        self,
        id: ItemId,
        *,
        payload: Mapping[str, Any] | None = None,
        title: str | None = None,
        if_match: int | None = None,
    ) -> WholeItem:
        """Change your own item while it is in draft or returned.

        For initiator. Calls `PATCH /v1/items/{id}`.

        `payload`: A merge patch (RFC 7396).
        `if_match`: The version that the item must still have; otherwise `Conflict` is raised.
        """
        ask = Ask(
            "edit_item",
            "PATCH",
            f"/v1/items/{segment(id)}",
            accept="application/json",
            body={"payload": payload, "title": title},
            if_match=if_match,
        )
        return cast("WholeItem", self._json(ask))

    def get_attestation(self, id: ItemId) -> Any:
        """What the service knows about an item's outcome, as an in-toto statement that pipelines can check: signed by
        the log.

        For any valid credential. Calls `GET /v1/items/{id}/attestation`.
        """
        ask = Ask(
            "get_attestation",
            "GET",
            f"/v1/items/{segment(id)}/attestation",
            accept="application/vnd.dsse.envelope.v1+json",
        )
        return cast("Any", self._json(ask))

    def get_checkpoint(self, *, cosignatures: Cosignatures | None = None) -> str:
        """The signed head of the log (C2SP checkpoint).

        For any valid credential. Calls `GET /v1/log/checkpoint`.

        `cosignatures`: `required`: the newest checkpoint that has as many cosignatures as the service requires; `any`:
            the newest one, with the cosignatures it has.
        """
        ask = Ask(
            "get_checkpoint",
            "GET",
            "/v1/log/checkpoint",
            accept="text/plain",
            query={"cosignatures": cosignatures},
        )
        return self._text(ask)

    def get_console_settings(self) -> ConsoleSettings:
        """What the console needs to know before sign-in.

        Open to anyone. Calls `GET /console.json`.
        """
        ask = Ask("get_console_settings", "GET", "/console.json", accept="application/json", is_open=True)
        return cast("ConsoleSettings", self._json(ask))

    def get_content(self, id: ItemId, digest: Digest) -> Content:
        """A content that an item has or had: the one with this digest.

        For any valid credential. Calls `GET /v1/items/{id}/contents/{digest}`.
        """
        ask = Ask(
            "get_content",
            "GET",
            f"/v1/items/{segment(id)}/contents/{segment(digest)}",
            accept="application/json",
        )
        return cast("Content", self._json(ask))

    def get_entry_bundle(self, tile: str) -> bytes:
        """Entries of the log (C2SP entry bundle).

        For auditor. Calls `GET /v1/log/tile/entries/{tile}`.
        """
        ask = Ask(
            "get_entry_bundle",
            "GET",
            f"/v1/log/tile/entries/{segments(tile)}",
            accept="application/octet-stream",
        )
        return self._bytes(ask)

    def get_evidence(
        self,
        *,
        item: ItemId | None = None,
        from_: Time | None = None,
        to: Time | None = None,
        documents: Documents | None = None,
        kept: Index | None = None,
    ) -> bytes:
        """An evidence bundle: proves offline what happened, and that it followed the rules.

        For auditor. Calls `GET /v1/evidence`.

        `item`: Everything about this item; give either `item`, or `from` and `to`.
        `from_`: Everything from this time on.
        `to`: And before this time.
        `documents`: With `none`, what people wrote is left out; the proofs remain valid.
        `kept`: The number of entries in a checkpoint you kept: the bundle then contains the proof that the log
            continues it.
        """
        ask = Ask(
            "get_evidence",
            "GET",
            "/v1/evidence",
            accept="application/zip",
            query={"item": item, "from": from_, "to": to, "documents": documents, "kept": kept},
        )
        return self._bytes(ask)

    def get_figures(self, *, days: Days | None = None) -> Figures:
        """Figures of the whole ledger: open items, decisions and refusals by day, and how long decisions took.

        For any valid credential. Calls `GET /v1/figures`.

        `days`: How many days back, today included.
        """
        ask = Ask("get_figures", "GET", "/v1/figures", accept="application/json", query={"days": days})
        return cast("Figures", self._json(ask))

    def get_health(self) -> Health:
        """Whether the process is alive.

        Open to anyone. Calls `GET /healthz`.
        """
        ask = Ask("get_health", "GET", "/healthz", accept="application/json", is_open=True)
        return cast("Health", self._json(ask))

    def get_item(self, id: ItemId) -> WholeItem:
        """One item.

        For any valid credential. Calls `GET /v1/items/{id}`.
        """
        ask = Ask("get_item", "GET", f"/v1/items/{segment(id)}", accept="application/json")
        return cast("WholeItem", self._json(ask))

    def get_item_proof(self, id: ItemId, *, after: Index | None = None, limit: ProofLimit | None = None) -> Proofs:
        """Proofs that the item's entries are in the log.

        For any valid credential. Calls `GET /v1/items/{id}/proof`.

        `after`: Only entries with a higher index.
        `limit`: The maximum number to return.
        """
        ask = Ask(
            "get_item_proof",
            "GET",
            f"/v1/items/{segment(id)}/proof",
            accept="application/json",
            query={"after": after, "limit": limit},
        )
        return cast("Proofs", self._json(ask))

    def get_openapi(self) -> Any:
        """This document.

        Open to anyone. Calls `GET /openapi.json`.
        """
        ask = Ask("get_openapi", "GET", "/openapi.json", accept="application/json", is_open=True)
        return cast("Any", self._json(ask))

    def get_permit(self, id: ItemId) -> bytes:
        """A permit for the holder of the lease: proves offline, to a target, that the effect under way was begun by the
        rules.

        For executor. Calls `GET /v1/items/{id}/permit`.
        """
        ask = Ask("get_permit", "GET", f"/v1/items/{segment(id)}/permit", accept="application/zip")
        return self._bytes(ask)

    def get_permit_issuer(self) -> PermitIssuer:
        """Where targets find the keys of permit tokens (OpenID Connect Discovery); only with `[permits]`.

        Open to anyone. Calls `GET /.well-known/openid-configuration`.
        """
        ask = Ask(
            "get_permit_issuer",
            "GET",
            "/.well-known/openid-configuration",
            accept="application/json",
            is_open=True,
        )
        return cast("PermitIssuer", self._json(ask))

    def get_permit_keys(self) -> PermitKeys:
        """The keys of permit tokens (RFC 7517); only with `[permits]`.

        Open to anyone. Calls `GET /.well-known/jwks.json`.
        """
        ask = Ask("get_permit_keys", "GET", "/.well-known/jwks.json", accept="application/json", is_open=True)
        return cast("PermitKeys", self._json(ask))

    def get_protected_resource(self) -> ProtectedResource:
        """The identity provider that issues tokens (RFC 9728); only with mechanism `oauth`.

        Open to anyone. Calls `GET /.well-known/oauth-protected-resource`.
        """
        ask = Ask(
            "get_protected_resource",
            "GET",
            "/.well-known/oauth-protected-resource",
            accept="application/json",
            is_open=True,
        )
        return cast("ProtectedResource", self._json(ask))

    def get_readiness(self) -> Health:
        """Whether the service can take requests.

        Open to anyone. Calls `GET /readyz`.
        """
        ask = Ask("get_readiness", "GET", "/readyz", accept="application/json", is_open=True)
        return cast("Health", self._json(ask))

    def get_session(self) -> Session:
        """The actor and the role bound to the presented credential.

        For any valid credential. Calls `GET /v1/session`.
        """
        ask = Ask("get_session", "GET", "/v1/session", accept="application/json")
        return cast("Session", self._json(ask))

    def get_tile(self, tile: str) -> bytes:
        """Hashes of the log's tree (C2SP tlog-tiles).

        For any valid credential. Calls `GET /v1/log/tile/{tile}`.
        """
        ask = Ask("get_tile", "GET", f"/v1/log/tile/{segments(tile)}", accept="application/octet-stream")
        return self._bytes(ask)

    def get_workflow(self, name: str, *, digest: Digest | None = None) -> Workflow:
        """One workflow with its definition.

        For any valid credential. Calls `GET /v1/workflows/{name}`.

        `digest`: The digest of the definition to return, in force or not, such as the one an item was created under.
        """
        ask = Ask(
            "get_workflow",
            "GET",
            f"/v1/workflows/{segment(name)}",
            accept="application/json",
            query={"digest": digest},
        )
        return cast("Workflow", self._json(ask))

    def get_workflow_diagram(self, name: str, *, digest: Digest | None = None) -> str:
        """One workflow as a diagram.

        For any valid credential. Calls `GET /v1/workflows/{name}/diagram`.

        `digest`: The digest of the definition to return, in force or not, such as the one an item was created under.
        """
        ask = Ask(
            "get_workflow_diagram",
            "GET",
            f"/v1/workflows/{segment(name)}/diagram",
            accept="image/svg+xml",
            query={"digest": digest},
        )
        return self._text(ask)

    def issue_permit_token(
        self,
        id: ItemId,
        *,
        audience: str,
        expires_in_s: int | None = None,
        idempotency_key: str | None = None,
    ) -> PermitToken:
        """Issue a token with which the holder of the lease shows one target that the effect under way was approved.

        For executor. Calls `POST /v1/items/{id}/permit-token`.

        `audience`: One of `[permits] audiences`.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "issue_permit_token",
            "POST",
            f"/v1/items/{segment(id)}/permit-token",
            accept="application/json",
            body={"audience": audience, "expires_in_s": expires_in_s},
            key=key_of(idempotency_key),
        )
        return cast("PermitToken", self._json(ask))

    def list_actors(self) -> Actors:
        """Actors and their roles.

        For security_admin, auditor. Calls `GET /v1/actors`.
        """
        ask = Ask("list_actors", "GET", "/v1/actors", accept="application/json")
        return cast("Actors", self._json(ask))

    def list_credentials(self) -> Credentials:
        """Credentials and their state; never a digest.

        For security_admin, auditor. Calls `GET /v1/credentials`.
        """
        ask = Ask("list_credentials", "GET", "/v1/credentials", accept="application/json")
        return cast("Credentials", self._json(ask))

    def list_events(self, *, after: Index | None = None, limit: Limit | None = None) -> Events:
        """The ledger's entries in order; with `Accept: text/event-stream`, a live feed.

        For any valid credential. Calls `GET /v1/events`.

        `after`: Only entries with a higher index.
        `limit`: The maximum number to return.
        """
        ask = Ask("list_events", "GET", "/v1/events", accept="application/json", query={"after": after, "limit": limit})
        return cast("Events", self._json(ask))

    def list_history(self, id: ItemId, *, limit: Limit | None = None, cursor: ShortText | None = None) -> History:
        """Everything that happened to an item, including edits and comments, oldest first.

        For any valid credential. Calls `GET /v1/items/{id}/history`.

        `limit`: The maximum number to return.
        `cursor`: The `next` of the previous page.
        """
        ask = Ask(
            "list_history",
            "GET",
            f"/v1/items/{segment(id)}/history",
            accept="application/json",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("History", self._json(ask))

    def iter_history(self, id: ItemId, *, limit: Limit | None = None) -> Iterator[Transition]:
        """The same as `list_history`, page after page."""
        pages = Pages()
        while pages.has_more:
            page = self.list_history(
                id,
                limit=limit,
                cursor=pages.cursor,
            )
            pages.turn(page["next"])
            yield from page["history"]

    def list_items(
        self,
        *,
        state: ShortText | None = None,
        workflow: ShortText | None = None,
        created_by: ShortText | None = None,
        waiting_for: Me | None = None,
        risk: ShortText | None = None,
        q: ShortText | None = None,
        view: View | None = None,
        sort: Sort | None = None,
        limit: ItemsLimit | None = None,
        cursor: ShortText | None = None,
    ) -> ItemsPage:
        """Items, newest first unless sorted.

        For any valid credential. Calls `GET /v1/items`.

        `state`: Only items in this state.
        `workflow`: Only items of this workflow.
        `created_by`: Only items created by this actor.
        `waiting_for`: Only items that are waiting for the caller now.
        `risk`: Only items whose payload has this `risk`.
        `q`: Ignoring case: a part of the title, of a text or number in the payload or of the creator's name, or the
            first 8 or more characters of the id.
        `view`: `summary` leaves out payloads, and says how many items there are.
        `sort`: `created`: newest first; `updated`: most recently changed first; `due`: soonest deadline first, items
            without one last; `title`: by the first 32 characters, ignoring case.
        `limit`: The maximum number to return; over 200 only with `view=summary`.
        `cursor`: The `next` of the previous page, with the same `sort`.
        """
        ask = Ask(
            "list_items",
            "GET",
            "/v1/items",
            accept="application/json",
            query={
                "state": state,
                "workflow": workflow,
                "created_by": created_by,
                "waiting_for": waiting_for,
                "risk": risk,
                "q": q,
                "view": view,
                "sort": sort,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("ItemsPage", self._json(ask))

    def iter_items(
        self,
        *,
        state: ShortText | None = None,
        workflow: ShortText | None = None,
        created_by: ShortText | None = None,
        waiting_for: Me | None = None,
        risk: ShortText | None = None,
        q: ShortText | None = None,
        view: View | None = None,
        sort: Sort | None = None,
        limit: ItemsLimit | None = None,
    ) -> Iterator[Item | ItemSummary]:
        """The same as `list_items`, page after page."""
        pages = Pages()
        while pages.has_more:
            page = self.list_items(
                state=state,
                workflow=workflow,
                created_by=created_by,
                waiting_for=waiting_for,
                risk=risk,
                q=q,
                view=view,
                sort=sort,
                limit=limit,
                cursor=pages.cursor,
            )
            pages.turn(page["next"])
            yield from page["items"]

    def list_nodes(self) -> Nodes:
        """The nodes that share the ledger.

        For security_admin, auditor. Calls `GET /v1/nodes`.
        """
        ask = Ask("list_nodes", "GET", "/v1/nodes", accept="application/json")
        return cast("Nodes", self._json(ask))

    def list_transitions(
        self,
        id: ItemId,
        *,
        limit: Limit | None = None,
        cursor: ShortText | None = None,
    ) -> Transitions:
        """The moves of an item, oldest first.

        For any valid credential. Calls `GET /v1/items/{id}/transitions`.

        `limit`: The maximum number to return.
        `cursor`: The `next` of the previous page.
        """
        ask = Ask(
            "list_transitions",
            "GET",
            f"/v1/items/{segment(id)}/transitions",
            accept="application/json",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("Transitions", self._json(ask))

    def iter_transitions(self, id: ItemId, *, limit: Limit | None = None) -> Iterator[Transition]:
        """The same as `list_transitions`, page after page."""
        pages = Pages()
        while pages.has_more:
            page = self.list_transitions(
                id,
                limit=limit,
                cursor=pages.cursor,
            )
            pages.turn(page["next"])
            yield from page["transitions"]

    def list_webhooks(self) -> Webhooks:
        """The endpoints that are told about entries, and how far each has got.

        For security_admin, auditor. Calls `GET /v1/webhooks`.
        """
        ask = Ask("list_webhooks", "GET", "/v1/webhooks", accept="application/json")
        return cast("Webhooks", self._json(ask))

    def list_workflows(self) -> Workflows:
        """The workflows in force.

        For any valid credential. Calls `GET /v1/workflows`.
        """
        ask = Ask("list_workflows", "GET", "/v1/workflows", accept="application/json")
        return cast("Workflows", self._json(ask))

    def look_at_item(self, id: ItemId, *, content_digest: Digest) -> None:
        """Remember that you looked at an item's content.

        For any valid credential. Calls `PUT /v1/items/{id}/look`.

        `content_digest`: The content that was looked at: the one the item has now.
        """
        ask = Ask(
            "look_at_item",
            "PUT",
            f"/v1/items/{segment(id)}/look",
            accept="application/json",
            body={"content_digest": content_digest},
        )
        self._nothing(ask)

    def replay_webhook(self, name: str, *, from_: int) -> Webhook:
        """Deliver to an endpoint again, from an entry on that it has passed or is at; a paused one is resumed.

        For security_admin. Calls `POST /v1/webhooks/{name}/replay`.

        `from_`: The index of the entry to deliver next: at most `next` of the endpoint, because nothing can be left
            out. An endpoint with a new name in the configuration begins where `from` there says.
        """
        ask = Ask(
            "replay_webhook",
            "POST",
            f"/v1/webhooks/{segment(name)}/replay",
            accept="application/json",
            body={"from": from_},
        )
        return cast("Webhook", self._json(ask))

    def revoke_credential(
        self,
        id: CredentialId,
        *,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Revocation:
        """Revoke a credential, immediately and permanently; a repeated request returns the existing revocation.

        For security_admin. Calls `POST /v1/credentials/{id}/revocation`.

        `comment`: The reason, kept in the ledger.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "revoke_credential",
            "POST",
            f"/v1/credentials/{segment(id)}/revocation",
            accept="application/json",
            body={"comment": comment},
            key=key_of(idempotency_key),
        )
        return cast("Revocation", self._json(ask))

    def take_action(
        self,
        id: ItemId,
        *,
        action: str,
        comment: str | None = None,
        content_digest: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> Transition:
        """Take an action on an item.

        For any valid credential. Calls `POST /v1/items/{id}/transitions`.

        `content_digest`: The content being decided on.
        `if_match`: The version that the item must still have; otherwise `Conflict` is raised.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "take_action",
            "POST",
            f"/v1/items/{segment(id)}/transitions",
            accept="application/json",
            body={"action": action, "comment": comment, "content_digest": content_digest, "inputs": inputs},
            if_match=if_match,
            key=key_of(idempotency_key),
        )
        return cast("Transition", self._json(ask))


class AsyncOperations(AsyncAsks):
    """One method for each operation."""

    async def add_comment(self, id: ItemId, *, text: str, idempotency_key: str | None = None) -> Transition:
        """Comment on an item.

        For any valid credential. Calls `POST /v1/items/{id}/comments`.

        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "add_comment",
            "POST",
            f"/v1/items/{segment(id)}/comments",
            accept="application/json",
            body={"text": text},
            key=key_of(idempotency_key),
        )
        return cast("Transition", await self._json(ask))

    async def create_item(
        self,
        *,
        title: str,
        workflow: str,
        payload: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> WholeItem:
        """Create an item as a draft.

        For initiator. Calls `POST /v1/items`.

        `payload`: What the workflow's payload_schema requires; must be complete when submitted, at most 64 KiB.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "create_item",
            "POST",
            "/v1/items",
            accept="application/json",
            body={"payload": payload, "title": title, "workflow": workflow},
            key=key_of(idempotency_key),
        )
        return cast("WholeItem", await self._json(ask))

    async def edit_item(
        self,
        id: ItemId,
        *,
        payload: Mapping[str, Any] | None = None,
        title: str | None = None,
        if_match: int | None = None,
    ) -> WholeItem:
        """Change your own item while it is in draft or returned.

        For initiator. Calls `PATCH /v1/items/{id}`.

        `payload`: A merge patch (RFC 7396).
        `if_match`: The version that the item must still have; otherwise `Conflict` is raised.
        """
        ask = Ask(
            "edit_item",
            "PATCH",
            f"/v1/items/{segment(id)}",
            accept="application/json",
            body={"payload": payload, "title": title},
            if_match=if_match,
        )
        return cast("WholeItem", await self._json(ask))

    async def get_attestation(self, id: ItemId) -> Any:
        """What the service knows about an item's outcome, as an in-toto statement that pipelines can check: signed by
        the log.

        For any valid credential. Calls `GET /v1/items/{id}/attestation`.
        """
        ask = Ask(
            "get_attestation",
            "GET",
            f"/v1/items/{segment(id)}/attestation",
            accept="application/vnd.dsse.envelope.v1+json",
        )
        return cast("Any", await self._json(ask))

    async def get_checkpoint(self, *, cosignatures: Cosignatures | None = None) -> str:
        """The signed head of the log (C2SP checkpoint).

        For any valid credential. Calls `GET /v1/log/checkpoint`.

        `cosignatures`: `required`: the newest checkpoint that has as many cosignatures as the service requires; `any`:
            the newest one, with the cosignatures it has.
        """
        ask = Ask(
            "get_checkpoint",
            "GET",
            "/v1/log/checkpoint",
            accept="text/plain",
            query={"cosignatures": cosignatures},
        )
        return await self._text(ask)

    async def get_console_settings(self) -> ConsoleSettings:
        """What the console needs to know before sign-in.

        Open to anyone. Calls `GET /console.json`.
        """
        ask = Ask("get_console_settings", "GET", "/console.json", accept="application/json", is_open=True)
        return cast("ConsoleSettings", await self._json(ask))

    async def get_content(self, id: ItemId, digest: Digest) -> Content:
        """A content that an item has or had: the one with this digest.

        For any valid credential. Calls `GET /v1/items/{id}/contents/{digest}`.
        """
        ask = Ask(
            "get_content",
            "GET",
            f"/v1/items/{segment(id)}/contents/{segment(digest)}",
            accept="application/json",
        )
        return cast("Content", await self._json(ask))

    async def get_entry_bundle(self, tile: str) -> bytes:
        """Entries of the log (C2SP entry bundle).

        For auditor. Calls `GET /v1/log/tile/entries/{tile}`.
        """
        ask = Ask(
            "get_entry_bundle",
            "GET",
            f"/v1/log/tile/entries/{segments(tile)}",
            accept="application/octet-stream",
        )
        return await self._bytes(ask)

    async def get_evidence(
        self,
        *,
        item: ItemId | None = None,
        from_: Time | None = None,
        to: Time | None = None,
        documents: Documents | None = None,
        kept: Index | None = None,
    ) -> bytes:
        """An evidence bundle: proves offline what happened, and that it followed the rules.

        For auditor. Calls `GET /v1/evidence`.

        `item`: Everything about this item; give either `item`, or `from` and `to`.
        `from_`: Everything from this time on.
        `to`: And before this time.
        `documents`: With `none`, what people wrote is left out; the proofs remain valid.
        `kept`: The number of entries in a checkpoint you kept: the bundle then contains the proof that the log
            continues it.
        """
        ask = Ask(
            "get_evidence",
            "GET",
            "/v1/evidence",
            accept="application/zip",
            query={"item": item, "from": from_, "to": to, "documents": documents, "kept": kept},
        )
        return await self._bytes(ask)

    async def get_figures(self, *, days: Days | None = None) -> Figures:
        """Figures of the whole ledger: open items, decisions and refusals by day, and how long decisions took.

        For any valid credential. Calls `GET /v1/figures`.

        `days`: How many days back, today included.
        """
        ask = Ask("get_figures", "GET", "/v1/figures", accept="application/json", query={"days": days})
        return cast("Figures", await self._json(ask))

    async def get_health(self) -> Health:
        """Whether the process is alive.

        Open to anyone. Calls `GET /healthz`.
        """
        ask = Ask("get_health", "GET", "/healthz", accept="application/json", is_open=True)
        return cast("Health", await self._json(ask))

    async def get_item(self, id: ItemId) -> WholeItem:
        """One item.

        For any valid credential. Calls `GET /v1/items/{id}`.
        """
        ask = Ask("get_item", "GET", f"/v1/items/{segment(id)}", accept="application/json")
        return cast("WholeItem", await self._json(ask))

    async def get_item_proof(
        self,
        id: ItemId,
        *,
        after: Index | None = None,
        limit: ProofLimit | None = None,
    ) -> Proofs:
        """Proofs that the item's entries are in the log.

        For any valid credential. Calls `GET /v1/items/{id}/proof`.

        `after`: Only entries with a higher index.
        `limit`: The maximum number to return.
        """
        ask = Ask(
            "get_item_proof",
            "GET",
            f"/v1/items/{segment(id)}/proof",
            accept="application/json",
            query={"after": after, "limit": limit},
        )
        return cast("Proofs", await self._json(ask))

    async def get_openapi(self) -> Any:
        """This document.

        Open to anyone. Calls `GET /openapi.json`.
        """
        ask = Ask("get_openapi", "GET", "/openapi.json", accept="application/json", is_open=True)
        return cast("Any", await self._json(ask))

    async def get_permit(self, id: ItemId) -> bytes:
        """A permit for the holder of the lease: proves offline, to a target, that the effect under way was begun by the
        rules.

        For executor. Calls `GET /v1/items/{id}/permit`.
        """
        ask = Ask("get_permit", "GET", f"/v1/items/{segment(id)}/permit", accept="application/zip")
        return await self._bytes(ask)

    async def get_permit_issuer(self) -> PermitIssuer:
        """Where targets find the keys of permit tokens (OpenID Connect Discovery); only with `[permits]`.

        Open to anyone. Calls `GET /.well-known/openid-configuration`.
        """
        ask = Ask(
            "get_permit_issuer",
            "GET",
            "/.well-known/openid-configuration",
            accept="application/json",
            is_open=True,
        )
        return cast("PermitIssuer", await self._json(ask))

    async def get_permit_keys(self) -> PermitKeys:
        """The keys of permit tokens (RFC 7517); only with `[permits]`.

        Open to anyone. Calls `GET /.well-known/jwks.json`.
        """
        ask = Ask("get_permit_keys", "GET", "/.well-known/jwks.json", accept="application/json", is_open=True)
        return cast("PermitKeys", await self._json(ask))

    async def get_protected_resource(self) -> ProtectedResource:
        """The identity provider that issues tokens (RFC 9728); only with mechanism `oauth`.

        Open to anyone. Calls `GET /.well-known/oauth-protected-resource`.
        """
        ask = Ask(
            "get_protected_resource",
            "GET",
            "/.well-known/oauth-protected-resource",
            accept="application/json",
            is_open=True,
        )
        return cast("ProtectedResource", await self._json(ask))

    async def get_readiness(self) -> Health:
        """Whether the service can take requests.

        Open to anyone. Calls `GET /readyz`.
        """
        ask = Ask("get_readiness", "GET", "/readyz", accept="application/json", is_open=True)
        return cast("Health", await self._json(ask))

    async def get_session(self) -> Session:
        """The actor and the role bound to the presented credential.

        For any valid credential. Calls `GET /v1/session`.
        """
        ask = Ask("get_session", "GET", "/v1/session", accept="application/json")
        return cast("Session", await self._json(ask))

    async def get_tile(self, tile: str) -> bytes:
        """Hashes of the log's tree (C2SP tlog-tiles).

        For any valid credential. Calls `GET /v1/log/tile/{tile}`.
        """
        ask = Ask("get_tile", "GET", f"/v1/log/tile/{segments(tile)}", accept="application/octet-stream")
        return await self._bytes(ask)

    async def get_workflow(self, name: str, *, digest: Digest | None = None) -> Workflow:
        """One workflow with its definition.

        For any valid credential. Calls `GET /v1/workflows/{name}`.

        `digest`: The digest of the definition to return, in force or not, such as the one an item was created under.
        """
        ask = Ask(
            "get_workflow",
            "GET",
            f"/v1/workflows/{segment(name)}",
            accept="application/json",
            query={"digest": digest},
        )
        return cast("Workflow", await self._json(ask))

    async def get_workflow_diagram(self, name: str, *, digest: Digest | None = None) -> str:
        """One workflow as a diagram.

        For any valid credential. Calls `GET /v1/workflows/{name}/diagram`.

        `digest`: The digest of the definition to return, in force or not, such as the one an item was created under.
        """
        ask = Ask(
            "get_workflow_diagram",
            "GET",
            f"/v1/workflows/{segment(name)}/diagram",
            accept="image/svg+xml",
            query={"digest": digest},
        )
        return await self._text(ask)

    async def issue_permit_token(
        self,
        id: ItemId,
        *,
        audience: str,
        expires_in_s: int | None = None,
        idempotency_key: str | None = None,
    ) -> PermitToken:
        """Issue a token with which the holder of the lease shows one target that the effect under way was approved.

        For executor. Calls `POST /v1/items/{id}/permit-token`.

        `audience`: One of `[permits] audiences`.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "issue_permit_token",
            "POST",
            f"/v1/items/{segment(id)}/permit-token",
            accept="application/json",
            body={"audience": audience, "expires_in_s": expires_in_s},
            key=key_of(idempotency_key),
        )
        return cast("PermitToken", await self._json(ask))

    async def list_actors(self) -> Actors:
        """Actors and their roles.

        For security_admin, auditor. Calls `GET /v1/actors`.
        """
        ask = Ask("list_actors", "GET", "/v1/actors", accept="application/json")
        return cast("Actors", await self._json(ask))

    async def list_credentials(self) -> Credentials:
        """Credentials and their state; never a digest.

        For security_admin, auditor. Calls `GET /v1/credentials`.
        """
        ask = Ask("list_credentials", "GET", "/v1/credentials", accept="application/json")
        return cast("Credentials", await self._json(ask))

    async def list_events(self, *, after: Index | None = None, limit: Limit | None = None) -> Events:
        """The ledger's entries in order; with `Accept: text/event-stream`, a live feed.

        For any valid credential. Calls `GET /v1/events`.

        `after`: Only entries with a higher index.
        `limit`: The maximum number to return.
        """
        ask = Ask("list_events", "GET", "/v1/events", accept="application/json", query={"after": after, "limit": limit})
        return cast("Events", await self._json(ask))

    async def list_history(self, id: ItemId, *, limit: Limit | None = None, cursor: ShortText | None = None) -> History:
        """Everything that happened to an item, including edits and comments, oldest first.

        For any valid credential. Calls `GET /v1/items/{id}/history`.

        `limit`: The maximum number to return.
        `cursor`: The `next` of the previous page.
        """
        ask = Ask(
            "list_history",
            "GET",
            f"/v1/items/{segment(id)}/history",
            accept="application/json",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("History", await self._json(ask))

    async def iter_history(self, id: ItemId, *, limit: Limit | None = None) -> AsyncIterator[Transition]:
        """The same as `list_history`, page after page."""
        pages = Pages()
        while pages.has_more:
            page = await self.list_history(
                id,
                limit=limit,
                cursor=pages.cursor,
            )
            pages.turn(page["next"])
            for one in page["history"]:
                yield one

    async def list_items(
        self,
        *,
        state: ShortText | None = None,
        workflow: ShortText | None = None,
        created_by: ShortText | None = None,
        waiting_for: Me | None = None,
        risk: ShortText | None = None,
        q: ShortText | None = None,
        view: View | None = None,
        sort: Sort | None = None,
        limit: ItemsLimit | None = None,
        cursor: ShortText | None = None,
    ) -> ItemsPage:
        """Items, newest first unless sorted.

        For any valid credential. Calls `GET /v1/items`.

        `state`: Only items in this state.
        `workflow`: Only items of this workflow.
        `created_by`: Only items created by this actor.
        `waiting_for`: Only items that are waiting for the caller now.
        `risk`: Only items whose payload has this `risk`.
        `q`: Ignoring case: a part of the title, of a text or number in the payload or of the creator's name, or the
            first 8 or more characters of the id.
        `view`: `summary` leaves out payloads, and says how many items there are.
        `sort`: `created`: newest first; `updated`: most recently changed first; `due`: soonest deadline first, items
            without one last; `title`: by the first 32 characters, ignoring case.
        `limit`: The maximum number to return; over 200 only with `view=summary`.
        `cursor`: The `next` of the previous page, with the same `sort`.
        """
        ask = Ask(
            "list_items",
            "GET",
            "/v1/items",
            accept="application/json",
            query={
                "state": state,
                "workflow": workflow,
                "created_by": created_by,
                "waiting_for": waiting_for,
                "risk": risk,
                "q": q,
                "view": view,
                "sort": sort,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("ItemsPage", await self._json(ask))

    async def iter_items(
        self,
        *,
        state: ShortText | None = None,
        workflow: ShortText | None = None,
        created_by: ShortText | None = None,
        waiting_for: Me | None = None,
        risk: ShortText | None = None,
        q: ShortText | None = None,
        view: View | None = None,
        sort: Sort | None = None,
        limit: ItemsLimit | None = None,
    ) -> AsyncIterator[Item | ItemSummary]:
        """The same as `list_items`, page after page."""
        pages = Pages()
        while pages.has_more:
            page = await self.list_items(
                state=state,
                workflow=workflow,
                created_by=created_by,
                waiting_for=waiting_for,
                risk=risk,
                q=q,
                view=view,
                sort=sort,
                limit=limit,
                cursor=pages.cursor,
            )
            pages.turn(page["next"])
            for one in page["items"]:
                yield one

    async def list_nodes(self) -> Nodes:
        """The nodes that share the ledger.

        For security_admin, auditor. Calls `GET /v1/nodes`.
        """
        ask = Ask("list_nodes", "GET", "/v1/nodes", accept="application/json")
        return cast("Nodes", await self._json(ask))

    async def list_transitions(
        self,
        id: ItemId,
        *,
        limit: Limit | None = None,
        cursor: ShortText | None = None,
    ) -> Transitions:
        """The moves of an item, oldest first.

        For any valid credential. Calls `GET /v1/items/{id}/transitions`.

        `limit`: The maximum number to return.
        `cursor`: The `next` of the previous page.
        """
        ask = Ask(
            "list_transitions",
            "GET",
            f"/v1/items/{segment(id)}/transitions",
            accept="application/json",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("Transitions", await self._json(ask))

    async def iter_transitions(self, id: ItemId, *, limit: Limit | None = None) -> AsyncIterator[Transition]:
        """The same as `list_transitions`, page after page."""
        pages = Pages()
        while pages.has_more:
            page = await self.list_transitions(
                id,
                limit=limit,
                cursor=pages.cursor,
            )
            pages.turn(page["next"])
            for one in page["transitions"]:
                yield one

    async def list_webhooks(self) -> Webhooks:
        """The endpoints that are told about entries, and how far each has got.

        For security_admin, auditor. Calls `GET /v1/webhooks`.
        """
        ask = Ask("list_webhooks", "GET", "/v1/webhooks", accept="application/json")
        return cast("Webhooks", await self._json(ask))

    async def list_workflows(self) -> Workflows:
        """The workflows in force.

        For any valid credential. Calls `GET /v1/workflows`.
        """
        ask = Ask("list_workflows", "GET", "/v1/workflows", accept="application/json")
        return cast("Workflows", await self._json(ask))

    async def look_at_item(self, id: ItemId, *, content_digest: Digest) -> None:
        """Remember that you looked at an item's content.

        For any valid credential. Calls `PUT /v1/items/{id}/look`.

        `content_digest`: The content that was looked at: the one the item has now.
        """
        ask = Ask(
            "look_at_item",
            "PUT",
            f"/v1/items/{segment(id)}/look",
            accept="application/json",
            body={"content_digest": content_digest},
        )
        await self._nothing(ask)

    async def replay_webhook(self, name: str, *, from_: int) -> Webhook:
        """Deliver to an endpoint again, from an entry on that it has passed or is at; a paused one is resumed.

        For security_admin. Calls `POST /v1/webhooks/{name}/replay`.

        `from_`: The index of the entry to deliver next: at most `next` of the endpoint, because nothing can be left
            out. An endpoint with a new name in the configuration begins where `from` there says.
        """
        ask = Ask(
            "replay_webhook",
            "POST",
            f"/v1/webhooks/{segment(name)}/replay",
            accept="application/json",
            body={"from": from_},
        )
        return cast("Webhook", await self._json(ask))

    async def revoke_credential(
        self,
        id: CredentialId,
        *,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Revocation:
        """Revoke a credential, immediately and permanently; a repeated request returns the existing revocation.

        For security_admin. Calls `POST /v1/credentials/{id}/revocation`.

        `comment`: The reason, kept in the ledger.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "revoke_credential",
            "POST",
            f"/v1/credentials/{segment(id)}/revocation",
            accept="application/json",
            body={"comment": comment},
            key=key_of(idempotency_key),
        )
        return cast("Revocation", await self._json(ask))

    async def take_action(
        self,
        id: ItemId,
        *,
        action: str,
        comment: str | None = None,
        content_digest: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> Transition:
        """Take an action on an item.

        For any valid credential. Calls `POST /v1/items/{id}/transitions`.

        `content_digest`: The content being decided on.
        `if_match`: The version that the item must still have; otherwise `Conflict` is raised.
        `idempotency_key`: Repeats an earlier call; by default every call has a new key.
        """
        ask = Ask(
            "take_action",
            "POST",
            f"/v1/items/{segment(id)}/transitions",
            accept="application/json",
            body={"action": action, "comment": comment, "content_digest": content_digest, "inputs": inputs},
            if_match=if_match,
            key=key_of(idempotency_key),
        )
        return cast("Transition", await self._json(ask))
