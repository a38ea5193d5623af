# ruff: noqa: RUF001, E501 - the look-alikes are the point of this table
"""The table of URL forms: what attackers and careless people write, and what becomes of each.

`REFUSED` pairs a form with the reason word. `NAMES` pass at creation, because only a name server knows where they lead.
`PUBLIC` are literals that a webhook may go to. `spellings` writes one IPv4 address in every way that some parser takes.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

FULL_WIDTH = str.maketrans("0123456789abcdefx", "０１２３４５６７８９ａｂｃｄｅｆｘ")
CIRCLED = str.maketrans("0123456789", "⓪①②③④⑤⑥⑦⑧⑨")
MATHEMATICAL = str.maketrans("0123456789", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗")

# One of each kind that is not public, beyond `is_global` too.
PRIVATE_IPV4 = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.255.254",
    "169.254.0.1", "169.254.255.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.8", "192.0.0.170",
    "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
)  # fmt: skip
METADATA_IPV4 = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16")
PUBLIC_IPV4 = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.88.98.255", "192.88.100.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15",
    "168.63.129.17",
)  # fmt: skip
PRIVATE_IPV6 = (
    "::", "::1", "::2", "100::1", "100:0:0:1::1", "2001::1", "2001:2::1", "2001:10::1", "2001:db8::1", "3fff::1",
    "3fff:fff::1", "4000::1", "5f00::1", "64:ff9b:1::1", "64:ff9b:1::808:808", "64:ff9b:1:ffff::1", "8000::1", "c000::1",
    "fc00::1", "fd12:3456:789a::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1", "::ffff:0:8.8.8.8",
    "::8.8.8.8", "64:ff9a::1", "64:ff9b:0:0:0:1::1",
)  # fmt: skip
METADATA_IPV6 = ("fd00:ec2::254", "fd20:ce::254")
PUBLIC_IPV6 = (
    "2000::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001::1", "3ffe::1", "64:ff9b::8.8.8.8",
    "2002:808:808::1", "2a00::5efe:808:808", "::ffff:8.8.8.8", "::ffff:808:808",
)  # fmt: skip


def spellings(address: str) -> Iterator[str]:
    """An IPv4 address as hosts that some reader turns back into it."""
    value = int(IPv4Address(address))
    one, two, three, four = IPv4Address(address).packed
    tail3, tail2 = value & 0xFFFFFF, value & 0xFFFF
    yield address
    yield f"{address}."
    yield f"{one}.{tail3}"
    yield f"{one}.{two}.{tail2}"
    yield str(value)
    yield hex(value)
    yield hex(value).upper()
    yield f"0x{value:016x}"
    yield f"0{value:o}"
    yield f"000{value:o}"
    yield f"0{one:o}.0{two:o}.0{three:o}.0{four:o}"
    yield f"000{one:o}.00{two:o}.0{three:o}.{four}"
    yield f"0x{one:x}.0x{two:x}.0x{three:x}.0x{four:x}"
    yield f"0x{one:02X}.{two}.0{three:o}.{four}"
    yield f"0{one:o}.0x{tail3:x}"
    yield f"{one}.0x{two:x}.{tail2}"
    yield address.translate(FULL_WIDTH)
    yield address.translate(CIRCLED)
    yield address.translate(MATHEMATICAL)
    yield address.replace(".", "。")
    yield address.replace(".", "．")
    yield address.replace(".", "｡")
    yield hex(value).translate(FULL_WIDTH)
    yield str(value).translate(FULL_WIDTH)


def carriers(address: str) -> Iterator[str]:
    """The IPv6 addresses that carry an IPv4 address."""
    value = int(IPv4Address(address))
    high, low = value >> 16, value & 0xFFFF
    yield f"::ffff:{address}"
    yield f"::ffff:{high:x}:{low:x}"
    yield f"0:0:0:0:0:ffff:{high:04x}:{low:04X}"
    yield f"::{address}"
    yield f"::ffff:0:{address}"
    yield f"64:ff9b::{address}"
    yield f"64:ff9b::{high:x}:{low:x}"
    yield f"64:ff9b:1::{high:x}:{low:x}"
    yield str(IPv6Address(0x0064_FF9B_0001 << 80 | high << 64 | low << 40))
    yield f"2002:{high:x}:{low:x}::"
    yield f"2002:{high:x}:{low:x}::1"
    yield str(IPv6Address(0x2001_0000 << 96 | 0x0808_0808 << 64 | (~value & 0xFFFF_FFFF)))
    yield str(IPv6Address(0x2001_0000 << 96 | value << 64 | (~0x0808_0808 & 0xFFFF_FFFF)))
    yield f"2a00::5efe:{high:x}:{low:x}"
    yield f"2a00::200:5efe:{high:x}:{low:x}"


_FORMS: dict[str, tuple[str, ...]] = {
    "scheme": (
        "", "example.com", "//example.com/", "/hook", "http", "http:", "http:/example.com", "http:example.com",
        "ftp://example.com/", "file:///etc/passwd", "file://localhost/etc/passwd", "gopher://127.0.0.1:6379/_x",
        "dict://127.0.0.1:11211/", "ldap://127.0.0.1/", "tftp://example.com/", "sftp://example.com/", "ws://example.com/",
        "wss://example.com/", "javascript:alert(1)", "data:text/plain,x", "jar:http://example.com!/", "unix:///run/x",
        "http+unix://%2Frun%2Fx/", "httpx://example.com/", "hxxp://example.com/", "ｈttp://example.com/",
        "http：//example.com/", "url:http://example.com/", "view-source:http://example.com/", "http;//example.com/",
        "-http://example.com/", "1http://example.com/", "<http://example.com/>", "netdoc:///etc/hosts",
    ),
    "user_info": (
        "http://user@example.com/", "http://user:secret@example.com/", "http://@example.com/", "http://:@example.com/",
        "http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/", "http://example.com:80@127.0.0.1/",
        "http://a@b@example.com/", "http://example.com%40@127.0.0.1/", "http://user@[::1]/", "http://[::1]@example.com/",
        "https://example.com:443@169.254.169.254:80/", "http://1.1.1.1&@127.0.0.1/",
    ),
    "port": (
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:99999999999/", "http://example.com:-1/",
        "http://example.com:+80/", "http://example.com:/", "http://example.com:080/", "http://example.com:80:80/",
        "http://example.com:0x50/", "http://example.com:８０/", "http://example.com:8_0/", "http://example.com:80a/",
        "http://[2606:4700:4700::1111]:/", "http://[2606:4700:4700::1111]:65536/", "http://1.1.1.1:00080/",
        "http://example.com:22/", "http://example.com:25/", "http://example.com:79/", "http://example.com:81/",
        "http://example.com:442/", "http://example.com:444/", "http://example.com:6379/", "http://example.com:8079/",
        "http://example.com:8081/", "http://example.com:8442/", "http://example.com:8444/", "http://example.com:65535/",
        "http://1.1.1.1:22/", "http://[2606:4700:4700::1111]:25/", "https://example.com:9200/", "http://example.com:%38%30/",
        "http://example.com:80x/", "http://::1/", "http://::1]/", "http://［::1］/", "http://example.com:80;80/", "http://example.com:80,80/",
    ),
    "characters": (
        " http://example.com/", "http://example.com/ ", "http://exa mple.com/", "http://example.com/a b",
        "http://example.com/a\tb", "http://exam\tple.com/", "http://example.com/\r\nX-Evil: 1", "http://example.com\n/",
        "ht\ntp://example.com/", "\x00http://example.com/", "http://example.com\x00.evil.com/", "http://example.com/\x00",
        "http://example.com/\x7f", "http://example.com/\x85", "http://example.com/\x1b[2J", "http://example.com\u00a0/",
        "http://example.com/\u2028", "http://example.com/\u2029", "http://example.com/\u3000", "http://exam\u200bple.com/",
        "http://127.0.0.\u00ad1/", "http://\ufeff127.0.0.1/", "http://example.com/\u202e", "http://example.com/\ud800",
        "http://example.com\\@127.0.0.1/", "http://127.0.0.1\\@example.com/", "http:\\\\127.0.0.1\\", "http:/\\127.0.0.1/",
        "http://example.com/\\..\\", "\\\\127.0.0.1\\share", "http://example.com\\", "http://127.0.0.1\\.example.com/",
        "http://[::1\x00]/", "http://127.0.0.1 @example.com/", "\u2003http://example.com/", "http://example.com/\u180e",
    ),
    "host": (
        "http://", "http:///", "http:///etc/passwd", "http://?x", "http://#x", "http:////127.0.0.1/", "http://./",
        "http://../", "http://.example.com/", "http://example..com/", "http://exa%6dple.com/", "http://%31%32%37.0.0.1/",
        "http://127.0.0.1%00.example.com/", "http://127.0.0.1%2f.example.com/", "http://example.com%23/",
        "http://-example.com/", "http://example-.com/", "http://exam!ple.com/", "http://exam*ple.com/", "http://a,b/",
        "http://(127.0.0.1)/", "http://'127.0.0.1'/", "http://<127.0.0.1>/", "http://{127.0.0.1}/", "http://127.0.0.1;/",
        "http://a&b/", "http://a=b/", "http://a+b/", "http://a~b/", "http://$HOME/", "http://`id`/", "http://a|b/", "http://a^b/",
        "http://1.2.3.4.5/", "http://256.1.1.1/", "http://1.256.1.1/", "http://1.1.1.256/", "http://1.1.65536/",
        "http://1.16777216/", "http://4294967296/", "http://0x100000000/", "http://040000000000/", "http://127..1/",
        "http://.127.0.0.1/", "http://127.0.0.1../", "http://08/", "http://127.0.0.08/", "http://0x/", "http://0xg.0x/",
        "http://127.0.0.0x/", "http://example.0x7f/", "http://example.127/", "http://1e3.1/", "http://127.0.0.-1/",
        "http://127.0.0.1%20/", "http://-1/", "http://99999999999999999999/", "http://[]/", "http://[:]/", "http://[:::]/",
        "http://[::1/", "http://[[::1]]/", "http://[::1].example.com/", "http://example.com[::1]/",
        "http://[::1]]/", "http://[::g]/", "http://[1:2:3:4:5:6:7]/", "http://[1:2:3:4:5:6:7:8:9]/",
        "http://[1::2::3]/", "http://[12345::]/", "http://[127.0.0.1]/", "http://[example.com]/", "http://[v1.fe80::a]/",
        "http://[vF.x]/", "http://[fe80::1%eth0]/", "http://[fe80::1%25eth0]/", "http://[::1%25lo]/", "http://[::1%lo]/",
        "http://[fe80::1%1]/", "http://[::ffff:127.0.0.1%25lo]/", "http://[::127.0.0.01]/", "http://[::ffff:127.1]/",
        "http://[::ffff:0x7f.0.0.1]/", "http://[::ffff:256.0.0.1]/", "http://[%3a%3a1]/", "http://[::１]/", "http://[：：1]/",
        "http://example.com：80/", "http://example.com／/", "http://example.com＠127.0.0.1/",
        "http://example.com？x/", "http://example.com＃x/", "http://a℀b.com/", "http://a℆b.com/", "http://１２７.０.０.１％/",
        "http://exa\u0338mple.com\u2260/", "http://a\u2260b.com/", "http://" + "a" * 64 + ".com/",
        "http://" + ".".join(["a" * 63] * 4) + "/", "http://" + "a." * 127 + "com/", "http://xn--\u00fc/", "http://\u0300a.com/",
        "http://。/", "http://example。。com/", "http://①②⑦.⓪.⓪.②⑤⑥/", "http://२५६.1.1.1/", "http://١٢٧.0.0.1/",
    ),
    "address": (
        "http://localhost/", "https://localhost/", "http://LOCALHOST/", "http://localhost./", "http://LocalHost:8080/",
        "http://app.localhost/", "http://a.b.localhost./", "http://ｌｏｃａｌｈｏｓｔ/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://localhost。/",
        "http://0/", "http://0./", "http://00/", "http://0x0/", "http://0.0/", "http://0.0.0/", "http://127.1/", "http://127.0.1/",
        "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://017700000001/", "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/", "http://１２７.0.0.1/", "http://0x7f.1/", "http://0x7F.0x0.0x0.0x1/", "http://127.0.0.1.:80/",
        "HTTP://127.0.0.1/", "hTTps://127.0.0.1/", "http://127.0.0.1?x=@example.com", "http://127.0.0.1#@example.com",
        "http://127.0.0.1/@example.com", "http://127.0.0.1:80?@example.com:80", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/",
        "http://[0000:0000:0000:0000:0000:0000:0000:0001]/", "http://[::0001]:8080/", "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/", "http://[::FFFF:7F00:0001]/", "http://[::127.0.0.1]/", "http://[::]/", "http://[::]:443/",
    ),
    "metadata": (
        "http://169.254.169.254/latest/meta-data/", "http://169.254.169.254:80/", "http://2852039166/", "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://169.16689662/", "http://１６９.２５４.１６９.２５４/",
        "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/", "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/", "http://[fd00:ec2::254]/", "http://[FD00:0EC2:0:0:0:0:0:254]/", "http://169.254.170.2/v2/",
        "http://100.100.100.200/", "http://168.63.129.16/", "http://metadata.google.internal/computeMetadata/v1/",
        "http://METADATA.google.internal./", "http://metadata.goog/",
    ),
    "length": ("http://example.com/" + "a" * (2_049 - 19), "http://" + "a" * 5_000, "x" * 100_000),
}  # fmt: skip

NAMES = (
    "http://example.com", "http://example.com/", "https://example.com/hook?x=1", "HTTPS://EXAMPLE.COM/", "http://example.com.",
    "http://example.com:80/", "http://example.com:443/", "http://example.com:8080/", "https://example.com:8443/",
    "http://127.0.0.1.nip.io/", "http://localhost.example.com/", "http://127.0.0.1.example.com/", "http://localtest.me/",
    "http://a_b.example.com/", "http://xn--bcher-kva.example/", "http://bücher.example/", "http://例え.テスト/", "http://ｅxample.com/",
    "http://example。com/", "http://faß.example/", "http://internal/", "http://db.internal/", "http://127-0-0-1.example/",
    "http://0x7f.example/", "http://example.com#@127.0.0.1/", "http://example.com?@127.0.0.1/", "http://example.com/@127.0.0.1",
    "http://example.com/%0d%0aX:1", "http://example.com/ü?ü=\"<>", "http://example.com//127.0.0.1/", "http://1.1.1.1.example/",
    "http://example.com/" + "a" * (2_048 - 19), "http://" + "a" * 63 + ".example/", "http://localhost.localdomain/",
    "http://ip6-localhost/", "http://0x7fzz/", "http://7f000001/", "http://deadbeef/",
)  # fmt: skip


def refused() -> Iterator[tuple[str, str]]:
    """Every form that is refused at creation, with its reason."""
    for reason, urls in _FORMS.items():
        for url in urls:
            yield url, reason
    for address, reason in _with_reasons(PRIVATE_IPV4, METADATA_IPV4):
        for host in spellings(address):
            yield f"http://{host}/", reason
        for inner in carriers(address):
            yield f"https://[{inner}]:8443/", reason
    for address, reason in _with_reasons(PRIVATE_IPV6, METADATA_IPV6):
        yield f"http://[{address}]/", reason
        yield f"http://[{IPv6Address(address).exploded.upper()}]:80/", reason


def _with_reasons(private: tuple[str, ...], metadata: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield from ((address, "address") for address in private)
    yield from ((address, "metadata") for address in metadata)


REFUSED = tuple(dict.fromkeys(refused()))
PUBLIC = tuple(f"http://{host}/hook" for address in PUBLIC_IPV4 for host in spellings(address)) + tuple(
    f"https://[{address}]/hook" for address in PUBLIC_IPV6
)
