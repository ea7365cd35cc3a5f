//! The crate `adblock`, driven by lines on standard input like peer.mjs (scripts/bench/adblock_peers.py).
//!   native REQUESTS LIST...
//! Answers "round" with the CPU seconds of one pass over all requests, strings in; "prepared" with those of a pass over requests
//! that were made before; "verdicts" with 0 or 1 for each; "memory" with its RSS.
use adblock::lists::{FilterSet, ParseOptions};
use adblock::request::Request;
use adblock::Engine;
use serde_json::{json, Value};
use std::io::BufRead;

struct Case {
    url: String,
    source: String,
    kind: String,
}

impl Case {
    fn request(&self) -> Option<Request> {
        Request::new(&self.url, &self.source, &self.kind, "GET").ok()
    }
}

fn cpu_seconds() -> f64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn rss_mb() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64 / 1e6
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(&arguments[0]).expect("the requests");
    let cases: Vec<Case> = text
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).expect("a request");
            let field = |name: &str| case[name].as_str().unwrap_or("").to_string();
            Case { url: field("url"), source: field("source"), kind: field("type") }
        })
        .collect();
    let lists: Vec<String> = arguments[1..]
        .iter()
        .map(|name| String::from_utf8_lossy(&std::fs::read(name).expect("a list")).into_owned())
        .collect();
    let start = cpu_seconds();
    let mut filters = FilterSet::new(false);
    for list in lists {
        filters.add_filter_list(list, ParseOptions::default());
    }
    let engine = Engine::new_with_filter_set(filters);
    println!("{}", json!({ "load_s": cpu_seconds() - start }));
    let blocks = |request: &Request| engine.check_network_request(request).should_block();
    let prepared: Vec<Option<Request>> = cases.iter().map(Case::request).collect();
    for line in std::io::stdin().lock().lines() {
        let start = cpu_seconds();
        let answer = match line.expect("a command").trim() {
            "round" => {
                let blocked = cases.iter().filter_map(Case::request).filter(|request| blocks(request)).count();
                json!({ "cpu_s": cpu_seconds() - start, "blocked": blocked })
            }
            "prepared" => {
                let blocked = prepared.iter().flatten().filter(|request| blocks(request)).count();
                json!({ "cpu_s": cpu_seconds() - start, "blocked": blocked })
            }
            "verdicts" => json!(prepared.iter().map(|each| each.as_ref().is_some_and(blocks) as u8).collect::<Vec<u8>>()),
            _ => json!({ "rss_mb": rss_mb() }),
        };
        println!("{answer}");
    }
}
