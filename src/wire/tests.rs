//! Messages in pieces, room that is made and given back, timers.

use super::*;
use bytes::Bytes;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, duplex};

#[tokio::test]
async fn receives_small_and_large_messages_whole() {
    for size in [1, FIRST - 1, FIRST, FIRST + 1, 5 * FIRST, 5 * MOST] {
        let (mut client, server) = duplex(1 << 20);
        let message: Vec<u8> = (0..size).map(|at| at as u8).collect();
        client.write_all(&message).await.unwrap();
        drop(client);
        let mut wire = Wire::new(server);
        while poll_fn(|context| wire.poll_receive(context)).await.unwrap() > 0 {}
        assert_eq!(wire.received, message);
    }
}

#[tokio::test]
async fn a_wire_at_rest_holds_next_to_no_memory() {
    let (mut client, server) = duplex(1 << 20);
    let mut wire = Wire::new(server);
    wire.expect(100_000);
    client.write_all(&[1; 100]).await.unwrap();
    poll_fn(|context| wire.poll_receive(context)).await.unwrap();
    assert!(wire.received.capacity() >= 100_000);
    wire.received.clear();
    wire.rest();
    assert_eq!(wire.received.capacity(), 0);
    assert!(wire.is_quiet());
    client.write_all(b"x").await.unwrap();
    assert!(!wire.is_quiet());
    wire.received.clear();
    drop(client);
    assert!(!wire.is_quiet());
}

/// Counts how often it was read, and how often for nothing.
struct Counted<T> {
    stream: T,
    reads: usize,
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (room, filled) = (buffer.remaining(), buffer.filled().len());
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.reads += 1;
        // A read that fills its room to the last byte is followed by one that may find nothing.
        self.reads += usize::from(buffer.filled().len() - filled == room && room > FIRST);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[tokio::test]
async fn a_message_of_known_length_is_read_twice_and_not_once_more() {
    const LENGTH: usize = 100_000;
    for is_whole in [false, true] {
        let (mut client, stream) = duplex(1 << 20);
        let mut wire = Wire::new(Counted { stream, reads: 0 });
        client.write_all(&[1; LENGTH]).await.unwrap();
        poll_fn(|context| wire.poll_receive(context)).await.unwrap();
        assert_eq!(wire.received.len(), FIRST);
        let left = (LENGTH - FIRST) as u64;
        if is_whole {
            wire.expect_whole(left);
        } else {
            drop(wire.received.split());
            wire.expect(left);
        }
        let more = poll_fn(|context| wire.poll_receive(context)).await.unwrap();
        assert_eq!(more as u64, left);
        assert_eq!(wire.stream.reads, 2);
        // What comes next finds no room.
        wire.received.clear();
        wire.rest();
        client.write_all(&[1; 10]).await.unwrap();
        poll_fn(|context| wire.poll_receive(context)).await.unwrap();
        assert!(wire.received.capacity() < FIRST);
    }
}

#[tokio::test]
async fn more_room_is_made_only_while_much_comes() {
    let (mut client, server) = duplex(1 << 20);
    let mut wire = Wire::new(server);
    let mut nobody = Context::from_waker(Waker::noop());
    for (comes, held) in [(FIRST, 2 * FIRST), (ON_STACK - 1, 2 * ON_STACK)] {
        client.write_all(&vec![1; comes]).await.unwrap();
        poll_fn(|context| wire.poll_receive(context)).await.unwrap();
        assert!(wire.poll_receive(&mut nobody).is_pending());
        assert!(
            wire.received.capacity() <= held,
            "{}",
            wire.received.capacity()
        );
    }
}

#[tokio::test]
async fn sends_both_pieces_in_order() {
    let (mut client, server) = duplex(3);
    let mut wire = Wire::new(server);
    let (mut first, mut second) = (Bytes::from("head"), Bytes::from("body"));
    let mut read = String::new();
    let (sent, received) = tokio::join!(
        async {
            poll_fn(|context| wire.poll_send(&mut first, &mut second, context)).await?;
            drop(wire);
            io::Result::Ok(())
        },
        client.read_to_string(&mut read)
    );
    sent.unwrap();
    received.unwrap();
    assert_eq!(read, "headbody");
}

#[tokio::test(start_paused = true)]
async fn a_timer_fires_when_it_is_due_and_not_when_it_was() {
    for (set_first, due_in) in [(1, 5), (5, 2)] {
        let start = Instant::now();
        let mut timer = Timer::default();
        let first = start + Duration::from_secs(set_first);
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(timer.poll(first, &mut nobody).is_pending());
        let due = start + Duration::from_secs(due_in);
        poll_fn(|context| timer.poll(due, context)).await;
        assert_eq!(Instant::now(), due);
    }
}

/// Within one turn of a task: takes all that it may do in it, then calls this.
async fn exhausted<R>(look: impl FnOnce(&mut Context<'_>) -> R) -> R {
    let mut look = Some(look);
    poll_fn(|context| {
        while pin!(tokio::task::consume_budget()).poll(context).is_ready() {}
        Poll::Ready(look.take().map(|look| look(context)).unwrap())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_done_much_is_not_told_lies() {
    let (mut client, server) = duplex(64);
    let mut wire = Wire::new(server);
    client.write_all(b"x").await.unwrap();
    assert!(!exhausted(|_| wire.is_quiet()).await);
    let mut timer = Timer::default();
    let due = Instant::now() + Duration::from_secs(1);
    assert!(
        exhausted(|context| timer.poll(due, context))
            .await
            .is_pending()
    );
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(
        exhausted(|context| timer.poll(due, context))
            .await
            .is_ready()
    );
}
