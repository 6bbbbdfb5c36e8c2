"""Which service is meant, and whether a token may be sent there."""

import ipaddress
import os
import ssl

import httpx

DEFAULT = "http://127.0.0.1:7450"


class AddressError(ValueError):
    """The service's address cannot be used."""


def chosen(url: str | None, *, insecure_http: bool) -> httpx.URL:
    """The address that was given, or that of the environment, or the one that `pilot demo` listens on."""
    text = url or os.environ.get("PILOT_URL") or DEFAULT
    remedy = "give it as https://host:port or http://host:port"
    try:
        parsed = httpx.URL(text)
    except (httpx.InvalidURL, TypeError):
        raise AddressError(f"the service's address is not a URL; {remedy}") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise AddressError(f"the service's address is not an http URL; {remedy}")
    if parsed.userinfo:
        raise AddressError(f"the service's address contains a name or password, which would be logged; {remedy}")
    if parsed.raw_path not in {b"/", b""} or parsed.fragment:
        raise AddressError(f"the service's address has a path; {remedy}")
    if parsed.scheme == "http" and not _is_this_machine(parsed.host) and not insecure_http:
        raise AddressError(
            f"{parsed} is on another machine and does not use https, so anyone on the network path could read the "
            "token. Use an https:// address, or insecure_http=True to accept that"
        )
    return parsed


def _is_this_machine(host: str) -> bool:
    """A name is trusted only if every resolver must resolve it to this machine (RFC 6761)."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tls(ca_file: str | os.PathLike[str] | None, client_cert: tuple[str, str] | None) -> ssl.SSLContext:
    """Certificates are always checked: against those that the system trusts, or against one issuer only."""
    context = ssl.create_default_context(cafile=ca_file or os.environ.get("PILOT_CA_FILE"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_cert is not None:
        context.load_cert_chain(*client_cert)
    return context
