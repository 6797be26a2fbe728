"""A server that says exactly what a test wants, byte by byte, with or without TLS."""

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Behaviour = Callable[[socket.socket, threading.Event], None]


@contextmanager
def raw_server(behave: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that hands every connection to `behave`, after the request's head."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, behave, over, tls))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(
    listener: socket.socket, behave: Behaviour, over: threading.Event, tls: ssl.SSLContext | None
) -> None:
    while not over.is_set():
        with suppress(OSError):
            connection, _ = listener.accept()
            connection.settimeout(10)
            with tls.wrap_socket(connection, server_side=True) if tls else connection as stream:
                stream.recv(65536)
                behave(stream, over)


def dripping(head: bytes, drop: bytes, every_s: float) -> Behaviour:
    """Sends `head`, and then `drop` again and again."""

    def behave(stream: socket.socket, over: threading.Event) -> None:
        stream.sendall(head)
        while not over.wait(every_s):
            stream.sendall(drop)

    return behave


def saying(answer: bytes) -> Behaviour:
    """Sends one answer."""

    def behave(stream: socket.socket, over: threading.Event) -> None:
        del over
        stream.sendall(answer)

    return behave


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS for 127.0.0.1 that nobody vouches for, and the certificate's file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobody.test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, path
