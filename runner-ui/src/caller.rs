//! Identifies the processes at the other end of a connection, from the system's socket tables. What they may do is for
//! the daemon to decide.
//!
//! A port says nothing about a program, and a secret copied from a browser's memory says nothing about who presents it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::net::TcpStream;

/// State of an established connection, as the tables write it.
const ESTABLISHED: &str = "01";

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionEnds {
    peer: SocketAddr,
    local: SocketAddr,
}

impl ConnectionEnds {
    /// Reads the ends of an accepted connection.
    pub(crate) fn from_stream(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self { peer: stream.peer_addr()?, local: stream.local_addr()? })
    }

    /// Returns the processes that hold the other end, as far as they can be inspected; empty if the system has no such
    /// tables.
    pub(crate) fn peer_pids(self) -> Vec<i32> {
        let Some(inode) = self.peer_inode() else { return Vec::new() };
        let socket = PathBuf::from(format!("socket:[{inode}]"));
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut holders: Vec<i32> = pids.filter(|pid| holds_socket(*pid, &socket)).collect();
        holders.sort_unstable();
        holders
    }

    /// Finds the inode of the other end's socket.
    fn peer_inode(self) -> Option<u64> {
        let table = |name: &str| fs::read_to_string(Path::new("/proc/self/net").join(name)).unwrap_or_default();
        // A program may reach an IPv4 address through an IPv6 socket.
        let as_ipv6 = Self { peer: to_ipv6_mapped(self.peer), local: to_ipv6_mapped(self.local) };
        self.find_peer_inode(&table("tcp")).or_else(|| as_ipv6.find_peer_inode(&table("tcp6")))
    }

    fn find_peer_inode(self, table: &str) -> Option<u64> {
        let theirs = proc_net_address(self.peer);
        let ours = proc_net_address(self.local);
        table.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_match = fields.get(1..4)? == [theirs.as_str(), ours.as_str(), ESTABLISHED];
            // A socket that no process holds has the inode 0.
            fields.get(9).filter(|_| is_match)?.parse().ok().filter(|inode| *inode > 0)
        })
    }
}

fn holds_socket(pid: i32, socket: &Path) -> bool {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    links.filter_map(|link| fs::read_link(link.path()).ok()).any(|to| to == socket)
}

fn to_ipv6_mapped(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddr::from((ip, address.port()))
}

/// Formats an address like the tables: each 32 bits in this machine's byte order.
fn proc_net_address(address: SocketAddr) -> String {
    let words = |bytes: &[u8]| -> String {
        let word = |four: &[u8]| four.try_into().map(u32::from_ne_bytes).map(|word| format!("{word:08X}"));
        bytes.chunks(4).filter_map(|four| word(four).ok()).collect()
    };
    let ip = match address.ip() {
        IpAddr::V4(ip) => words(&Ipv4Addr::octets(&ip)),
        IpAddr::V6(ip) => words(&Ipv6Addr::octets(&ip)),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn ends_of(theirs: &str, ours: &str) -> ConnectionEnds {
        ConnectionEnds { peer: theirs.parse().expect("an address"), local: ours.parse().expect("an address") }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_line_of_the_table_is_the_other_end_and_not_ones_own() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:128B 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 71 1\n   \
                     1: 0100007F:9C40 0100007F:128B 01 00000000:00000000 00:00000000 00000000  1000        0 72 1\n   \
                     2: 0100007F:9C41 0100007F:128B 06 00000000:00000000 00:00000000 00000000     0        0 0 3\n";
        assert_eq!(ends_of("127.0.0.1:40000", "127.0.0.1:4747").find_peer_inode(table), Some(72));
        assert_eq!(ends_of("127.0.0.1:40001", "127.0.0.1:4747").find_peer_inode(table), None, "it is closed");
        assert_eq!(ends_of("127.0.0.1:40000", "127.0.0.1:4748").find_peer_inode(table), None);
        assert_eq!(
            proc_net_address(to_ipv6_mapped("127.0.0.1:80".parse().expect("one"))),
            "0000000000000000FFFF00000100007F:0050"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_connection_is_held_by_who_has_made_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let ours = listener.local_addr().expect("an address");
        let stream = std::net::TcpStream::connect(ours).expect("it listens");
        let ends = ConnectionEnds { peer: stream.local_addr().expect("an address"), local: ours };
        let own = i32::try_from(std::process::id()).expect("BUG: a process id is an i32");
        assert!(ends.peer_pids().contains(&own));
        drop(stream);
        assert_eq!(ends.peer_pids(), Vec::<i32>::new());
    }
}
