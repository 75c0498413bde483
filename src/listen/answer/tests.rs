//! Answers on the wire: framed, gathered, cut.

use std::collections::VecDeque;
use std::future::poll_fn;

use http_body::{Frame, SizeHint};
use tokio::io::{AsyncReadExt, BufWriter, DuplexStream, duplex};

use http::StatusCode;

use super::*;
use crate::http1::Lines;

impl Transport for DuplexStream {
    fn reset_on_close(&mut self) {}
}

/// Holds back what is sent until it is told to let go of it, as TLS does.
impl Transport for BufWriter<DuplexStream> {
    fn reset_on_close(&mut self) {}
}

/// A body of pieces; `None` among them makes the reader wait once, an error cuts it.
struct Pieces {
    pieces: VecDeque<Result<Option<Bytes>, io::Error>>,
    length: Option<u64>,
}

impl Pieces {
    fn of(length: Option<u64>, pieces: &[&'static str]) -> Self {
        let pieces = pieces.iter().map(|it| match *it {
            "WAIT" => Ok(None),
            "CUT" => Err(io::ErrorKind::Other.into()),
            piece => Ok(Some(Bytes::from_static(piece.as_bytes()))),
        });
        Self {
            pieces: pieces.collect(),
            length,
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.pieces.pop_front() {
            None => Poll::Ready(None),
            Some(Ok(None)) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Ok(Some(piece))) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.length.is_some() && self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

const ASKED: Asked = Asked {
    version: Version::HTTP_11,
    is_head: false,
    keeps_alive: true,
};

/// The head's lines after the first, the body as framed, and how it ended.
async fn sent(answer: Answer<Pieces>, asked: Asked) -> (String, String, io::Result<bool>) {
    let (mut client, server) = duplex(1 << 20);
    let mut wire = Wire::new(server);
    let mut out = Vec::new();
    let mut answer = Sending::begin(answer, asked, asked.keeps_alive, "DATE", &mut out);
    let ended = poll_fn(|context| answer.poll_send(&mut wire, &mut out, context)).await;
    drop(wire);
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let (_, fields) = head.split_once("\r\n").unwrap();
    (fields.into(), body.into(), ended.map(|()| answer.keeps()))
}

fn answer(length: Option<u64>, pieces: &[&'static str]) -> Answer<Pieces> {
    Answer {
        status: StatusCode::OK,
        lines: Lines::new(),
        body: Pieces::of(length, pieces),
    }
}

#[tokio::test]
async fn a_body_is_framed_by_its_length_or_in_chunks() {
    let (head, body, ended) = sent(answer(Some(5), &["ab", "WAIT", "cde"]), ASKED).await;
    assert_eq!(head, "content-length: 5\r\ndate: DATE");
    assert_eq!(body, "abcde");
    assert!(ended.unwrap());
    let (head, body, ended) = sent(answer(None, &["ab", "WAIT", "", "cde"]), ASKED).await;
    assert_eq!(head, "transfer-encoding: chunked\r\ndate: DATE");
    assert_eq!(body, "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
    assert!(ended.unwrap());
}

#[tokio::test]
async fn large_pieces_are_framed_like_small_ones() {
    let large: &'static str = "x".repeat(SMALL + 1).leak();
    let (_, body, _) = sent(answer(None, &["ab", large, "WAIT", "c", large]), ASKED).await;
    let size = format!("{:X}", large.len());
    let expected =
        format!("2\r\nab\r\n{size}\r\n{large}\r\n1\r\nc\r\n{size}\r\n{large}\r\n0\r\n\r\n");
    assert_eq!(body, expected);
    let both = 2 * large.len() as u64;
    let (_, body, _) = sent(answer(Some(both), &[large, large]), ASKED).await;
    assert_eq!(body, large.repeat(2));
}

#[tokio::test]
async fn an_old_client_learns_the_end_from_the_connection() {
    let asked = Asked {
        version: Version::HTTP_10,
        ..ASKED
    };
    let (head, body, ended) = sent(answer(None, &["ab"]), asked).await;
    assert_eq!(head, "date: DATE\r\nconnection: close");
    assert_eq!(body, "ab");
    assert!(!ended.unwrap());
    let (head, _, ended) = sent(answer(Some(2), &["ab"]), asked).await;
    assert_eq!(
        head,
        "content-length: 2\r\ndate: DATE\r\nconnection: keep-alive"
    );
    assert!(ended.unwrap());
}

#[tokio::test]
async fn what_has_no_body_is_sent_without() {
    let asked = Asked {
        is_head: true,
        ..ASKED
    };
    let mut told = answer(Some(0), &[]);
    told.lines.push(b"content-length", b"7");
    let (head, body, ended) = sent(told, asked).await;
    assert_eq!(head, "content-length: 7\r\ndate: DATE");
    assert_eq!(body, "");
    assert!(ended.unwrap());
    let mut nothing = answer(Some(0), &[]);
    nothing.status = StatusCode::NO_CONTENT;
    let (head, body, _) = sent(nothing, ASKED).await;
    assert_eq!((&*head, &*body), ("date: DATE", ""));
    let (head, body, _) = sent(answer(Some(0), &[]), ASKED).await;
    assert_eq!((&*head, &*body), ("content-length: 0\r\ndate: DATE", ""));
}

#[tokio::test]
async fn a_body_that_breaks_is_cut_after_what_came_of_it() {
    for length in [Some(9), None] {
        let (_, body, ended) = sent(answer(length, &["ab", "CUT"]), ASKED).await;
        assert!(
            body.contains("ab") && !body.ends_with("0\r\n\r\n"),
            "{body}"
        );
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}

#[tokio::test]
async fn an_answer_that_closes_closes() {
    let mut last = answer(Some(0), &[]);
    last.lines.closes = true;
    let (head, _, ended) = sent(last, ASKED).await;
    assert_eq!(head, "content-length: 0\r\ndate: DATE\r\nconnection: close");
    assert!(!ended.unwrap());
}

#[tokio::test]
async fn nothing_is_asked_of_a_body_while_the_client_takes_nothing() {
    let (_client, server) = duplex(16);
    let mut wire = Wire::new(server);
    let mut out = Vec::new();
    let pieces: Vec<&'static str> = vec!["0123456789"; 10_000];
    let mut answer = Sending::begin(answer(None, &pieces), ASKED, true, "DATE", &mut out);
    let mut nobody = Context::from_waker(std::task::Waker::noop());
    for _ in 0..3 {
        assert!(
            answer
                .poll_send(&mut wire, &mut out, &mut nobody)
                .is_pending()
        );
        assert!(answer.is_stalled());
    }
    assert!(out.len() < 2 * ENOUGH);
    assert!(answer.body.pieces.len() > 8_000);
}

#[tokio::test]
async fn what_the_transport_holds_back_has_left_when_the_answer_ends() {
    let large: &'static str = "x".repeat(SMALL + 1).leak();
    let size = format!("{:X}\r\n{large}\r\n", large.len());
    for (length, body) in [
        (Some(2 * large.len() as u64), large.repeat(2)),
        (None, format!("{size}{size}0\r\n\r\n")),
    ] {
        // A client that takes a little at a time, of all that is held for it.
        let (mut client, server) = duplex(64);
        let mut wire = Wire::new(BufWriter::with_capacity(1 << 20, server));
        let mut out = Vec::new();
        let answer = answer(length, &[large, "WAIT", large]);
        let mut answer = Sending::begin(answer, ASKED, true, "DATE", &mut out);
        let sending = async {
            let ended = poll_fn(|context| answer.poll_send(&mut wire, &mut out, context)).await;
            drop(wire);
            ended
        };
        let mut text = String::new();
        let (ended, read) = tokio::join!(sending, client.read_to_string(&mut text));
        ended.unwrap();
        read.unwrap();
        assert_eq!(text.split_once("\r\n\r\n").unwrap().1, body);
    }
}
