//! Decides when spans and metrics leave, how often they are tried, and when they are given up. All of
//! it on a thread of its own: a collector that is slow or away holds up nothing but this.

use std::io;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prometheus_client::metrics::counter::Counter;
use prost::Message as _;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::collector::{Collector, Message, Refused};
use super::environment::{Destination, Push, Telemetry, Traces};
use super::metrics::{self, Between, attribute, scope};
use super::sampler::Sampler;
use super::span::{field, framed, open};
use super::spans::{Desk, Tracer};
use crate::observe::clock::WallClock;

/// How soon what was refused is tried again; then after twice as long each time.
const SOON: Duration = Duration::from_secs(1);

/// Told when everything before is done, by being dropped.
type Mark = std_mpsc::SyncSender<()>;

/// The export of this process's telemetry.
#[derive(Debug)]
pub struct Export {
    tracing: Option<(Arc<Desk>, Sampler)>,
    flush: Vec<mpsc::UnboundedSender<Mark>>,
}

/// What is counted and told.
pub struct Sources {
    /// Spans that were lost.
    pub dropped: Counter,
    /// The metrics now, in Prometheus text format 0.0.4.
    pub metrics: Box<dyn Fn() -> String + Send>,
    /// The time of day.
    pub wall: Arc<dyn WallClock>,
}

impl Export {
    /// Starts to export what is asked for. Where nothing is, this does nothing. A signal whose collector
    /// cannot be spoken to at all is told of and left out: calls do not depend on it.
    ///
    /// # Errors
    /// No thread started.
    pub fn start(telemetry: Telemetry, sources: Sources) -> io::Result<Self> {
        let mut export = Self {
            tracing: None,
            flush: Vec::new(),
        };
        let resource = Resource {
            attributes: telemetry
                .resource
                .iter()
                .map(|(key, value)| attribute(key, value))
                .collect(),
            ..Resource::default()
        };
        let mut traces = None;
        if let Some(asked) = telemetry.traces
            && let Some(collector) = Line::to(&asked.to, "traces")
        {
            let desk = Desk::new(asked.queue, asked.batch, sources.dropped);
            export.tracing = Some((Arc::clone(&desk), asked.sampler));
            traces = Some(SpanExport::new(asked, collector, desk, &resource));
        }
        let mut pushes = None;
        if let Some(asked) = telemetry.metrics
            && let Some(collector) = Line::to(&asked.to, "metrics")
        {
            pushes = Some(MetricExport {
                collector,
                asked,
                render: sources.metrics,
                resource,
                started: now(&*sources.wall),
                wall: sources.wall,
            });
        }
        if traces.is_none() && pushes.is_none() {
            return Ok(export);
        }
        let (span_orders, span_flush) = mpsc::unbounded_channel();
        let (metric_orders, metric_flush) = mpsc::unbounded_channel();
        export.flush = vec![span_orders, metric_orders];
        thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || {
                let runtime = runtime::Builder::new_current_thread().enable_all().build();
                let work = async move {
                    let spans = async {
                        if let Some(traces) = traces {
                            traces.serve(span_flush).await;
                        }
                    };
                    let metrics = async {
                        if let Some(pushes) = pushes {
                            pushes.serve(metric_flush).await;
                        }
                    };
                    tokio::join!(spans, metrics);
                };
                match runtime {
                    Ok(runtime) => runtime.block_on(work),
                    Err(error) => tracing::error!(%error, "telemetry cannot be exported"),
                }
            })?;
        Ok(export)
    }

    /// A worker's way to record requests, where they are.
    #[must_use]
    pub fn tracer(&self) -> Option<Tracer> {
        let (desk, sampler) = self.tracing.as_ref()?;
        Some(desk.tracer(*sampler))
    }

    /// Exports what waits, within the time. Blocks, so never call it on a worker.
    pub fn flush(&self, within: Duration) {
        let (mark, passed) = std_mpsc::sync_channel(0);
        for exporter in &self.flush {
            // An error: it is gone already.
            let _ = exporter.send(mark.clone());
        }
        drop(mark);
        let _ = passed.recv_timeout(within);
    }
}

/// A collector, and whether the trouble with it was told.
struct Line {
    collector: Collector,
    what: &'static str,
    failing: bool,
}

impl Line {
    /// Nothing is connected yet. `None`, and said: there is no way to it.
    fn to(destination: &Destination, what: &'static str) -> Option<Self> {
        match Collector::new(destination.clone()) {
            Ok(collector) => Some(Self {
                collector,
                what,
                failing: false,
            }),
            Err(error) => {
                let to = &destination.url;
                tracing::error!(what, %to, %error, "telemetry cannot be exported");
                None
            }
        }
    }

    /// Sends one message, again and again until it is taken, given up, or `patience` is over.
    async fn send(&mut self, message: Message, patience: Duration) -> Option<Bytes> {
        let deadline = Instant::now() + patience;
        let mut pause = SOON;
        loop {
            let sent = timeout_at(deadline, self.collector.post(message.clone())).await;
            let (why, wait) = match sent {
                Ok(Ok(answer)) => {
                    if std::mem::take(&mut self.failing) {
                        tracing::info!(what = self.what, "telemetry is exported again");
                    }
                    return Some(answer);
                }
                Ok(Err(Refused::ForNow { why, after })) => (why, Some(after.unwrap_or(pause))),
                Ok(Err(Refused::ForGood(why))) => (why, None),
                Err(_) => ("no answer in time".into(), None),
            };
            if !std::mem::replace(&mut self.failing, true) {
                let (what, to) = (self.what, self.collector.url());
                tracing::warn!(what, %to, %why, "telemetry is not taken; it is dropped when too much waits");
            }
            let wait = wait?.max(SOON);
            if Instant::now() + wait >= deadline {
                return None;
            }
            sleep(wait).await;
            pause *= 2;
        }
    }
}

struct SpanExport {
    collector: Line,
    desk: Arc<Desk>,
    asked: Traces,
    /// `ResourceSpans.resource` and `ScopeSpans.scope`, as fields.
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl SpanExport {
    fn new(asked: Traces, collector: Line, desk: Arc<Desk>, resource: &Resource) -> Self {
        let as_field = |message: Vec<u8>| {
            let mut out = Vec::with_capacity(message.len() + 4);
            field(&mut out, 1, &message);
            out
        };
        Self {
            collector,
            desk,
            resource: as_field(resource.encode_to_vec()),
            scope: as_field(scope().encode_to_vec()),
            asked,
        }
    }

    async fn serve(mut self, mut orders: mpsc::UnboundedReceiver<Mark>) {
        loop {
            let mark = tokio::select! {
                () = sleep(self.asked.delay) => None,
                () = self.desk.due.notified() => None,
                order = orders.recv() => match order {
                    Some(mark) => Some(mark),
                    None => return,
                },
            };
            for (spans, _) in self.desk.take() {
                let spans = Bytes::from(spans);
                for (batch, count) in batches(&spans, self.asked.batch) {
                    let batch = spans.slice_ref(batch);
                    self.send(batch, count).await;
                }
            }
            drop(mark);
        }
    }

    async fn send(&mut self, spans: Bytes, count: usize) {
        let message = self.message(spans);
        match self.collector.send(message, self.asked.patience).await {
            None => self.desk.lost(count),
            Some(answer) => {
                let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
                let Some(partial) = answer.partial_success else {
                    return;
                };
                let rejected = usize::try_from(partial.rejected_spans).unwrap_or(0);
                if rejected > 0 {
                    self.desk.lost(rejected.min(count));
                    tracing::debug!(rejected, why = partial.error_message, "spans were rejected");
                }
            }
        }
    }

    /// An `ExportTraceServiceRequest` of spans that are fields of `ScopeSpans`: what stands before them, and
    /// the spans, which are not copied.
    fn message(&self, spans: Bytes) -> Message {
        let scoped = self.scope.len() + spans.len();
        let of_resource = self.resource.len() + framed(scoped);
        let mut head = Vec::with_capacity(self.resource.len() + self.scope.len() + 16);
        open(&mut head, 1, of_resource);
        head.extend_from_slice(&self.resource);
        open(&mut head, 2, scoped);
        head.extend_from_slice(&self.scope);
        Message::of(Bytes::from(head), spans)
    }
}

/// Cuts encoded spans into pieces of at most so many.
fn batches(mut spans: &[u8], most: usize) -> Vec<(&[u8], usize)> {
    let mut batches = Vec::new();
    while !spans.is_empty() {
        let (mut end, mut count) = (0, 0);
        while count < most.max(1) {
            let mut rest = spans.get(end..).unwrap_or_default();
            let before = rest.len();
            if before == 0 || prost::encoding::decode_key(&mut rest).is_err() {
                break;
            }
            let Ok(length) = prost::encoding::decode_varint(&mut rest) else {
                break;
            };
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            end = (end + before - rest.len())
                .saturating_add(length)
                .min(spans.len());
            count += 1;
        }
        if count == 0 {
            // Not reached: what is cut was written here.
            break;
        }
        let (batch, rest) = spans.split_at(end);
        batches.push((batch, count));
        spans = rest;
    }
    batches
}

struct MetricExport {
    collector: Line,
    asked: Push,
    render: Box<dyn Fn() -> String + Send>,
    resource: Resource,
    started: u64,
    wall: Arc<dyn WallClock>,
}

impl MetricExport {
    async fn serve(mut self, mut orders: mpsc::UnboundedReceiver<Mark>) {
        loop {
            let mark = tokio::select! {
                () = sleep(self.asked.every) => None,
                order = orders.recv() => match order {
                    Some(mark) => Some(mark),
                    None => return,
                },
            };
            let between = Between {
                started: self.started,
                now: now(&*self.wall),
            };
            let request = metrics::request(&(self.render)(), self.resource.clone(), between);
            // What is not taken is told by the next, which counts it as well.
            let message = Message::of(request.encode_to_vec().into(), Bytes::new());
            self.collector.send(message, self.asked.patience).await;
            drop(mark);
        }
    }
}

fn now(wall: &dyn WallClock) -> u64 {
    u64::try_from(wall.now().as_nanosecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_end_where_spans_end() {
        let mut spans = Vec::new();
        for length in [0, 5, 200, 1] {
            field(&mut spans, 2, &vec![7; length]);
        }
        for (most, wanted) in [
            (1, &[1, 1, 1, 1][..]),
            (2, &[2, 2]),
            (3, &[3, 1]),
            (4, &[4]),
            (9, &[4]),
        ] {
            let cut = batches(&spans, most);
            let counts: Vec<_> = cut.iter().map(|(_, count)| *count).collect();
            assert_eq!(counts, wanted);
            let again: Vec<u8> = cut.iter().flat_map(|(batch, _)| batch.to_vec()).collect();
            assert_eq!(again, spans);
        }
        assert!(batches(&[], 5).is_empty());
    }
}
