//! Several machines asked side by side: one that is not there, or hangs, keeps the others from nothing.

use std::fs;
use std::time::{Duration, Instant};

use runner_testkit::{Daemon, Home, Repo, Tty, binary};

/// A person's machine, and one with a daemon and a run that has asked something.
struct Fleet {
    here: Home,
    there: Home,
    repo: Repo,
    _daemon: Daemon,
}

impl Fleet {
    /// `ssh` gets to `gpu`, hangs on the way to `slow`, and knows no other.
    fn new() -> Self {
        let (here, there) = (Home::new(), Home::new());
        let repo = there.scripted("one");
        repo.script().step(1, "echo '- Which port?' >> .runner/state/questions.md\nanswer retry 'Not yet.'");
        there.install("runnerctl", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary("runnerctl").display()));
        let pairs = there.env().iter().map(|(name, value)| format!("{name}='{value}'")).collect::<Vec<_>>().join(" ");
        let ssh = format!(
            "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nhost=$2\nshift 2\ncase $host in\n\
             gpu) exec env -i {pairs} sh -c \"$*\" ;;\nslow) exec sleep 60 ;;\nesac\n\
             echo \"no route to $host\" >&2\nexit 255\n"
        );
        here.install("ssh", &ssh);
        let daemon = there.daemon();
        there.ctl_in(&repo, &["start", "--yes", "-m", "Do it.", "--id", "far", "--queue-only"]).exits(0);
        there.ctl_in(&repo, &["step"]).exits(0);
        Self { here, there, repo, _daemon: daemon }
    }

    fn settings(&self, text: &str) {
        let folder = self.here.path().join("config/runnerctl");
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("config.toml"), text).expect("it can be written");
    }
}

#[test]
fn each_machine_is_shown_below_its_name_and_one_that_hangs_is_not_waited_for() {
    let fleet = Fleet::new();
    fleet.settings("[hosts]\ngpu = \"ssh://gpu\"\nslow = \"ssh://slow\"\ngone = \"ssh://gone\"\n");
    let begun = Instant::now();
    let shown = fleet.here.ctl(&["status", "--all-hosts"]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let text = &shown.exits(0).stdout;
    for words in ["ssh://gpu\n", "paused", "ssh://gone  ssh did not get to ssh://gone", "ssh://slow  no answer within"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let asked = fleet.here.ctl(&["questions", "--host", "gpu", "--host", "ssh://gone", "--json"]).exits(0).json();
    let hosts = asked["hosts"].as_array().expect("it is a list");
    assert_eq!((&hosts[0]["host"], &hosts[0]["questions"][0]["text"]), (&"ssh://gpu".into(), &"Which port?".into()));
    assert_eq!((&hosts[1]["host"], &hosts[1]["error"]["kind"]), (&"ssh://gone".into(), &"host".into()));
    fleet.here.ctl(&["status", "--host", "gone", "--host", "ssh://lost"]).exits(5);
}

#[test]
fn machines_are_watched_one_at_a_time_and_none_is_waited_for() {
    let fleet = Fleet::new();
    fleet.settings("[hosts]\na = \"ssh://gone\"\ngpu = \"ssh://gpu\"\nz = \"ssh://slow\"\n");
    let mut command = fleet.here.command("runnerctl");
    let mut tty = Tty::start(command.args(["watch", "--all-hosts"]), (120, 40));
    tty.sees_that("one that is not there is told, and the others are known", |screen| {
        let told = ["[ssh://gone] no answer", "ssh://gpu 1 paused", "ssh://slow connecting", "no route to gone"];
        told.iter().all(|words| screen.contains(words))
    });
    tty.keys(">").sees("[ssh://gpu] 1 paused");
    tty.sees("to continue: runnerctl --host ssh://gpu");
    tty.keys("n").sees("Note to the next session");
    tty.keys("Mind it.\r").sees("note n1: the next session that answers reads it");
    tty.keys(">").sees("[ssh://slow] connecting");
    tty.keys(">").sees("[ssh://gone] no answer");
    tty.keys("q");
    assert_eq!(tty.ended(), 0);
    assert!(tty.is_given_back());
    assert!(fleet.there.ctl_in(&fleet.repo, &["status"]).exits(0).stdout.contains("run far"));
    fleet.here.ctl(&["watch", "--all-hosts", "/srv"]).exits(2);
}

#[test]
fn a_name_leads_where_the_settings_say_and_more_than_one_only_to_what_takes_them() {
    let fleet = Fleet::new();
    let unknown = fleet.here.ctl(&["status", "--host", "gpu"]);
    assert!(unknown.exits(2).stderr.contains("[hosts] NAME"), "{unknown:?}");
    assert!(fleet.here.ctl(&["status", "--all-hosts"]).exits(2).stderr.contains("names no machine"));
    fleet.settings("[hosts]\ngpu = \"ssh://gpu\"\n");
    let path = fleet.repo.path().display().to_string();
    assert!(fleet.here.ctl(&["--host", "gpu", "-C", &path, "status"]).exits(0).stdout.contains("run far"));
    let one = fleet.here.ctl(&["status", "--all-hosts", "--json"]).exits(0).json();
    assert_eq!(one["hosts"].as_array().map(Vec::len), Some(1));
    for args in [
        &["tree", "--host", "gpu", "--host", "ssh://gone"][..],
        &["pause", "--all-hosts"],
        &["status", "--all-hosts", "--watch"],
        &["status", "--all-hosts", "--run", "far"],
        &["questions", "--all-hosts", "/srv"],
        &["doctor", "--all-hosts"],
        &["status", "--all-hosts", "--host", "gpu"],
        &["status", "--all-hosts", "--remote", "origin"],
    ] {
        fleet.here.ctl(args).exits(2);
    }
    fleet.settings("[hosts]\ngpu = \"gpu\"\n");
    let wrong = fleet.here.ctl(&["status", "--all-hosts"]);
    assert!(wrong.exits(1).stderr.contains("config.toml:2:7: "), "{wrong:?}");
    assert!(fleet.there.ctl_in(&fleet.repo, &["status"]).exits(0).stdout.contains("run far"), "and it is as it was");
}
