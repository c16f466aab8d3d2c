"""The proxy on the way to a server, by the environment's HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

import ipaddress
from urllib.parse import urlsplit

from lightrag_jsonl.core.errors import ConfigError

SOCKS_SCHEMES = {
    "socks": "socks5",
    "socks5": "socks5",
    "socks5h": "socks5h",
}  # the first: of desktops
PROXY_SCHEMES = ("http", "https", *SOCKS_SCHEMES.values())


def proxy_for(url: str) -> str | None:
    """The URL of the proxy for a server; None if the server is asked directly, as on this machine.

    `ConfigError` for a proxy of another kind, or for a SOCKS proxy without the package for it.
    """
    from urllib.request import getproxies

    server = urlsplit(url)
    host = server.hostname or ""
    proxies = getproxies()
    proxy = proxies.get(server.scheme) or proxies.get("all")
    exemptions = proxies.get("no", "").lower().split(",")
    is_exempt = any(_covers(entry.strip(), host, server.port) for entry in exemptions)
    if not proxy or is_loopback(host) or is_exempt:
        return None
    scheme, separator, address = proxy.strip().partition("://")
    if not separator:
        return f"http://{scheme}"
    scheme = SOCKS_SCHEMES.get(scheme.lower(), scheme.lower())
    if scheme not in PROXY_SCHEMES:
        raise ConfigError(
            f"the proxy in the environment is of the kind {scheme!r}: HTTP_PROXY, HTTPS_PROXY and ALL_PROXY "
            "take http://, https:// and socks5://"
        )
    if scheme in SOCKS_SCHEMES:
        _check_socks(host)
    return f"{scheme}://{address}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Whether a host is meant by an entry of NO_PROXY: a name, a domain, or a network (10.0.0.0/8)."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of them is a name, or the entry has a port
        pass
    name = entry.rpartition("://")[2].removeprefix("*").removeprefix(".")
    if port is not None:
        name = name.removesuffix(f":{port}")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _check_socks(host: str) -> None:
    try:
        import socksio  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"{host} is asked through the SOCKS proxy in ALL_PROXY (or HTTPS_PROXY), which needs a package: "
            "pip install '.[socks]', or name the host in NO_PROXY"
        ) from error
