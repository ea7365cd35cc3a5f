"""Runs inside the gateway's namespace: stand-ins for SSH and the dashboard, which must stay reachable whatever happens."""

import socket
import threading

SERVICES = {22: b"SSH-2.0-stand-in\r\n", 8081: b"dashboard\r\n"}


def serve(port: int, words: bytes) -> None:
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        ready.release()
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(words)


ready = threading.Semaphore(0)

if __name__ == "__main__":
    for port, words in SERVICES.items():
        threading.Thread(target=serve, args=(port, words), daemon=True).start()
    for _ in SERVICES:
        ready.acquire()
    print("ready", flush=True)  # noqa: T201  the test waits for it
    threading.Event().wait()
