"""The configuration profile by which iPhones, iPads and Macs take a certificate authority."""

import plistlib
from uuid import NAMESPACE_URL, uuid5


def mobileconfig(certificate_der: bytes, name: str, fingerprint: str) -> bytes:
    """Returns the profile, a property list. The same certificate gives the same profile, so a second one replaces the first.

    Args:
        certificate_der: the authority's certificate.
        name: its common name, which people see.
        fingerprint: of the certificate; the profile's identifiers are made from it.
    """
    payload = {
        "PayloadType": "com.apple.security.root",
        "PayloadVersion": 1,
        "PayloadIdentifier": f"org.gatewayfilter.ca.{fingerprint.replace(':', '')[:16].lower()}",
        "PayloadUUID": str(uuid5(NAMESPACE_URL, f"gatewayfilter:certificate:{fingerprint}")).upper(),
        "PayloadDisplayName": name,
        "PayloadDescription": "Lets this device trust the filter of its network.",
        "PayloadCertificateFileName": "gatewayfilter-ca.cer",
        "PayloadContent": certificate_der,
    }
    return plistlib.dumps({
        "PayloadType": "Configuration",
        "PayloadVersion": 1,
        "PayloadIdentifier": "org.gatewayfilter.profile",
        "PayloadUUID": str(uuid5(NAMESPACE_URL, f"gatewayfilter:profile:{fingerprint}")).upper(),
        "PayloadDisplayName": name,
        "PayloadDescription": f"SHA-256 {fingerprint}",
        "PayloadOrganization": "GatewayFilter",
        "PayloadRemovalDisallowed": False,
        "PayloadContent": [payload],
    })  # fmt: skip
