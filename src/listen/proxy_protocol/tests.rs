//! Headers of both versions, whole and broken, in one piece and byte by byte; what stands behind
//! them is never touched.

use super::*;
use proptest::prelude::*;
use proxy_header::{ProxiedAddress, Tlv};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// What follows a header on the connection.
const BEHIND: &[u8] = b"POST /a2a HTTP/1.1\r\n\r\n";

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await;
    let client = client.unwrap();
    client.set_nodelay(true).unwrap();
    (client, listener.accept().await.unwrap().0)
}

/// Reads the header from these pieces, and all that is left behind it.
async fn read_from(pieces: &[&[u8]]) -> (Result<Option<SocketAddr>, Flaw>, Vec<u8>) {
    let (mut client, mut server) = pair().await;
    let write = async move {
        for piece in pieces {
            // The reader may have hung up.
            if client.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let read = async {
        let header = read(&mut server).await;
        let mut rest = Vec::new();
        if header.is_ok() {
            server.read_to_end(&mut rest).await.unwrap();
        }
        (header, rest)
    };
    tokio::join!(write, read).1
}

/// The header in one piece with what follows, and byte by byte.
async fn both(header: &[u8]) -> Result<Option<SocketAddr>, Flaw> {
    let whole = [header, BEHIND].concat();
    let mut found = Vec::new();
    let dripped: Vec<&[u8]> = whole.chunks(1).collect();
    for pieces in [&[&whole[..]][..], &dripped] {
        let (read, rest) = read_from(pieces).await;
        if read.is_ok() {
            assert_eq!(rest, BEHIND);
        }
        found.push(read);
    }
    let second = found.pop().unwrap();
    let first = found.pop().unwrap();
    assert_eq!(first.is_ok(), second.is_ok(), "{first:?} {second:?}");
    first
}

async fn accepted(header: &[u8]) -> Option<SocketAddr> {
    both(header)
        .await
        .unwrap_or_else(|flaw| panic!("{flaw:?}: {:?}", String::from_utf8_lossy(header)))
}

async fn refused(header: &[u8]) {
    let read = both(header).await;
    assert!(
        matches!(read, Err(Flaw::Malformed(_))),
        "{read:?}: {:?}",
        String::from_utf8_lossy(header)
    );
}

fn address(text: &str) -> Option<SocketAddr> {
    Some(text.parse().unwrap())
}

/// A header of version 2.
fn block(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, rest].concat()
}

const IPV4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 80];

#[tokio::test]
async fn version_1_names_the_client() {
    for (line, client) in [
        (
            "PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n",
            address("192.0.2.7:8080"),
        ),
        (
            "PROXY TCP6 2001:db8::7 ::1 8080 80\r\n",
            address("[2001:db8::7]:8080"),
        ),
        (
            "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
             ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            address("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
        ),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN 192.0.2.7 10.0.0.1 8080 80\r\n", None),
        (
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
             ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            None,
        ),
    ] {
        assert_eq!(accepted(line.as_bytes()).await, client, "{line}");
    }
}

#[tokio::test]
async fn what_is_not_version_1_is_refused() {
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(92));
    assert_eq!(long.len(), LONGEST_LINE + 1);
    for line in [
        &*long,
        "PROXY UNKNOWNS\r\n                ",
        "PROXY TCP4 192.0.2.7 10.0.0.1 8080\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 8080 80 1\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\r\n",
        "PROXY TCP4  192.0.2.7 10.0.0.1 8080 80\r\n",
        "PROXY TCP4 192.0.2.007 10.0.0.1 8080 80\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 +8080 80\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 65536 80\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 -1 80\r\n",
        "PROXY TCP4 2001:db8::7 ::1 8080 80\r\n",
        "PROXY TCP6 192.0.2.7 10.0.0.1 8080 80\r\n",
        "PROXY TCP4 proxy.internal 10.0.0.1 8080 80\r\n",
        "PROXY UDP4 192.0.2.7 10.0.0.1 8080 80\r\n",
        "PROXY tcp4 192.0.2.7 10.0.0.1 8080 80\r\n",
        "proxy TCP4 192.0.2.7 10.0.0.1 8080 80\r\n",
        "PROXY\tTCP4 192.0.2.7 10.0.0.1 8080 80\r\n",
        " PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n",
        "PROXY TCP4 \u{e9}92.0.2.7 10.0.0.1 8080 80\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        refused(line.as_bytes()).await;
    }
}

#[tokio::test]
async fn version_2_names_the_client() {
    let ipv6: Vec<u8> = [
        "2001:db8::7"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets(),
        [0; 16],
    ]
    .concat()
    .into_iter()
    .chain([0x1f, 0x90, 0, 80])
    .collect();
    let with_tlvs = [&IPV4[..], &[0x04, 0, 2, 7, 7], &[0xee, 0, 0]].concat();
    let broken_tlvs = [&IPV4[..], &[0x04, 0xff, 0xff, 7]].concat();
    let unix = [0; 216];
    for (header, client) in [
        (block(0x21, 0x11, &IPV4), address("192.0.2.7:8080")),
        (block(0x21, 0x21, &ipv6), address("[2001:db8::7]:8080")),
        // What is appended is skipped, whatever it is and however long.
        (block(0x21, 0x11, &with_tlvs), address("192.0.2.7:8080")),
        (block(0x21, 0x11, &broken_tlvs), address("192.0.2.7:8080")),
        (
            block(0x21, 0x11, &[&IPV4[..], &vec![9; 65_523]].concat()),
            address("192.0.2.7:8080"),
        ),
        // The balancer speaks for itself, or does not know.
        (block(0x20, 0x00, &[]), None),
        (block(0x20, 0x11, &IPV4), None),
        (block(0x20, 0x77, &[1, 2, 3]), None),
        (block(0x21, 0x00, &[]), None),
        (block(0x21, 0x00, &[1, 2, 3]), None),
        (block(0x21, 0x31, &unix), None),
    ] {
        assert_eq!(accepted(&header).await, client, "{:?}", &header[12..16]);
    }
}

#[tokio::test]
async fn what_is_not_version_2_is_refused() {
    for header in [
        block(0x11, 0x11, &IPV4),
        block(0x31, 0x11, &IPV4),
        block(0x22, 0x11, &IPV4),
        block(0x2f, 0x11, &IPV4),
        // Not TCP.
        block(0x21, 0x12, &IPV4),
        block(0x21, 0x41, &IPV4),
        block(0x21, 0x13, &IPV4),
        // Too short for its family.
        block(0x21, 0x11, &IPV4[..11]),
        block(0x21, 0x21, &IPV4),
        block(0x21, 0x31, &IPV4),
        // Not the signature.
        b"\r\n\r\n\0\r\nQUIX\n\x21\x11\0\0".to_vec(),
    ] {
        refused(&header).await;
    }
}

#[tokio::test]
async fn a_header_that_ends_early_is_none() {
    let line = b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n";
    let block = block(0x21, 0x11, &IPV4);
    for header in [&line[..], &block] {
        for length in 1..header.len() {
            let (read, _) = read_from(&[&header[..length]]).await;
            assert!(
                matches!(read, Err(Flaw::Malformed(_))),
                "{length}: {read:?}"
            );
        }
    }
    // Who only connects is no offender.
    let (read, _) = read_from(&[]).await;
    assert!(matches!(read, Err(Flaw::Nothing)), "{read:?}");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let found = runtime().block_on(read_from(&[&bytes]));
        prop_assert!(found.0.is_err());
    }

    /// What begins like a header and then is anything.
    #[test]
    fn what_begins_well_is_read_or_refused(
        start in prop_oneof![
            Just(b"PROXY TCP4 ".to_vec()),
            Just(b"PROXY TCP6 ".to_vec()),
            Just(b"PROXY UNKNOWN".to_vec()),
            Just([SIGNATURE, b"\x21\x11\0\x0c"].concat()),
            Just([SIGNATURE, b"\x21"].concat()),
            Just(SIGNATURE.to_vec()),
        ],
        rest in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(b' '), Just(b'\r'), Just(b'\n'), Just(b'.'), b'0'..=b'9'],
            0..200,
        ),
    ) {
        let header = [start, rest].concat();
        let (read, left) = runtime().block_on(read_from(&[&header]));
        if read.is_ok() {
            prop_assert!(header.ends_with(&left));
        }
    }

    /// What the library writes is read as it was meant, with nothing behind it taken.
    #[test]
    fn what_was_written_is_read(
        client in any::<std::net::SocketAddr>(),
        port in any::<u16>(),
        is_text in any::<bool>(),
        tlv in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let gateway = SocketAddr::new(client.ip(), port);
        let client = SocketAddr::new(client.ip(), client.port());
        let address = ProxiedAddress::stream(client, gateway);
        let mut written = Vec::new();
        if is_text {
            ProxyHeader::with_address(address).encode_v1(&mut written).unwrap();
        } else {
            let header = ProxyHeader::with_tlvs(Some(address), [Tlv::UniqueId(tlv.into())]);
            header.encode_v2(&mut written).unwrap();
        }
        let whole = [&written[..], BEHIND].concat();
        let (read, left) = runtime().block_on(read_from(&[&whole]));
        prop_assert_eq!(read.unwrap(), Some(client));
        prop_assert_eq!(left, BEHIND);
    }
}
