//! `[review] sign`: a decision signed by the person, and `verify --reviewers`, which accepts no other.

use std::fs;
use std::process::{Command, Stdio};

use protocol::api::ReviewApiClient as _;
use protocol::request::AtRun;
use protocol::review::RejectParams;
use protocol::verify::{AuditReport, AuditRule};
use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::ProgramOutput;

use crate::audits::parse_report;
use crate::play::{RunPlay, sample};
use crate::review_by_person::assert_refused;

const BRANCH: &str = "refs/heads/runner/play";
const KEY: &str = "runner.reviewKey";

/// A run that waits for a signed decision on `b`, and the keys of two people.
struct WaitingReview {
    play: RunPlay,
}

impl WaitingReview {
    fn new() -> Self {
        let play = RunPlay::with_tree(&sample(), |config| {
            config.top("max_iterations = 3").section("[review]\nby = \"human\"\nsign = true\n")
        });
        play.script().always("echo $n > result.txt; answer done 'The result is written.'");
        let waiting = Self { play };
        waiting.make_key("ann");
        waiting.make_key("eve");
        waiting.play.start_run();
        waiting.play.client().wait_for(waiting.play.repo.path(), RunStatus::Waiting);
        waiting
    }

    fn path(&self, name: &str) -> String {
        self.play.home.path().join(name).display().to_string()
    }

    /// Creates a key, and a file that names it for reviews.
    fn make_key(&self, name: &str) {
        let path = self.path(name);
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "kit", "-f", &path]);
        assert!(keygen.status().expect("ssh-keygen runs").success());
        let public = self.public_key(name);
        self.write_reviewers(name, &format!("{name}@example.org namespaces=\"runner-review\" {public}"));
    }

    fn public_key(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.pub"))).expect("a key has a public half")
    }

    fn write_reviewers(&self, name: &str, text: &str) {
        fs::write(self.path(&format!("{name}.reviewers")), text).expect("a file can be written");
    }

    fn set_signing(&self, setting: &str, value: &str) {
        self.play.repo.git(&["config", "--global", setting, value]);
    }

    fn ctl(&self, args: &[&str]) -> ProgramOutput {
        self.play.home.ctl_in(&self.play.repo, args)
    }

    fn review(&self, args: &[&str]) -> ProgramOutput {
        self.play.home.review_in(&self.play.repo, args)
    }

    fn verify_with(&self, name: &str) -> AuditReport {
        parse_report(&self.ctl(&[
            "verify",
            "--run",
            "play",
            "--reviewers",
            &self.path(&format!("{name}.reviewers")),
            "--json",
        ]))
    }

    /// Asserts that each decision is reported to lack a valid signature, and what it has instead.
    #[track_caller]
    fn assert_violations_with(&self, name: &str, instead: &str) {
        let found = self.verify_with(name);
        let findings: Vec<_> = found.findings.iter().map(|finding| (finding.rule, finding.found.as_str())).collect();
        assert!(!findings.is_empty(), "{name}");
        for (rule, seen) in findings {
            assert!(rule == AuditRule::Signed && seen.starts_with(instead), "{name}: {rule} {seen}");
        }
        assert_eq!(found.reviewed.map(|signed| signed.held), Some(0), "{name}");
    }

    /// Replaces the last commit.
    fn replace_tip(&self, raw: &str) {
        let file = self.path("forged");
        fs::write(&file, raw).expect("it can be written");
        let id = self.play.repo.git(&["hash-object", "-t", "commit", "-w", &file]);
        self.play.repo.git(&["update-ref", BRANCH, &id]);
    }

    /// Waits for the review of the session after a rejection.
    fn wait_again(&self) {
        let is_pending = |run: &RunView| run.summary.state == RunStatus::Waiting && run.recent[0].iter == 3;
        self.play.client().wait_until(self.play.repo.path(), is_pending);
    }

    fn finish(&self) {
        self.play.client().wait_for(self.play.repo.path(), RunStatus::Limit);
    }
}

#[test]
fn a_word_that_is_signed_is_proven_and_no_other_one_is_taken() {
    let waiting = WaitingReview::new();
    let no_key = ["a review of this run has to be signed", "git config --global runner.reviewKey ~/.ssh/id_ed25519"];
    assert_refused(&waiting.review(&["approve"]), &no_key);
    waiting.set_signing("gpg.format", "openpgp");
    waiting.set_signing("user.signingKey", &waiting.path("ann"));
    assert_refused(&waiting.review(&["approve"]), &no_key);
    // A repository cannot name anyone's key.
    waiting.play.repo.git(&["config", KEY, &waiting.path("eve")]);
    assert_refused(&waiting.review(&["approve"]), &no_key);
    waiting.set_signing(KEY, &waiting.path("no-such-key"));
    assert_refused(&waiting.review(&["approve"]), &["the review could not be signed", "no-such-key"]);
    waiting.set_signing(KEY, &waiting.path("ann"));

    // Identical lines and blank lines stay as they were signed.
    let reason = "No test.\n\n\nNo test.\nNo test.\n";
    let rejected = waiting.review(&["reject", reason]);
    let notice = "signing \"reject\" of task b, iteration 0001 of run play, commit ";
    assert!(rejected.exits(0).stderr.starts_with(notice), "{}", rejected.stderr);
    waiting.wait_again();
    waiting.review(&["approve"]).exits(0);
    waiting.finish();
    assert!(waiting.play.repo.node("b").passes);

    let found = waiting.verify_with("ann");
    assert_eq!(found.findings, []);
    let signed = found.reviewed.expect("it was asked");
    assert_eq!((signed.held, signed.commits), (2, 2));
    assert!(signed.by[0].starts_with("ann@example.org SHA256:"), "{:?}", signed.by);
    let file = waiting.path("ann.reviewers");
    let text = waiting.ctl(&["verify", "--reviewers", &file]);
    assert!(text.exits(0).stdout.contains("2 reviews by people, signed by ann@example.org"), "{}", text.stdout);
    assert!(waiting.ctl(&["verify"]).exits(0).stdout.contains("that 2 reviews came from a person"));

    waiting.assert_violations_with("eve", "a signature of SHA256:");
    waiting.write_reviewers("none", "");
    waiting.write_reviewers("elsewhere", &format!("ann@example.org namespaces=\"git\" {}", waiting.public_key("ann")));
    waiting
        .write_reviewers("past", &format!("ann@example.org valid-before=\"20200101\" {}", waiting.public_key("ann")));
    for name in ["none", "elsewhere", "past"] {
        waiting.assert_violations_with(name, "a signature of SHA256:");
    }
    fs::copy(waiting.path("ann.pub"), waiting.path("revoked")).expect("it can be copied");
    waiting.set_signing("gpg.ssh.revocationFile", &waiting.path("revoked"));
    waiting.assert_violations_with("ann", "a signature of SHA256:");
}

#[test]
fn what_a_signature_is_of_is_told_so_that_others_can_check_it() {
    let waiting = WaitingReview::new();
    waiting.set_signing("gpg.format", "ssh");
    waiting.set_signing("user.signingKey", &waiting.path("ann"));
    waiting.review(&["reject", "Not yet."]).exits(0);
    waiting.wait_again();
    let found = waiting.verify_with("ann");
    let [review] = &found.reviews[..] else { panic!("one word: {:?}", found.reviews) };
    let pending = waiting.play.iteration_at(1).receipt.commit;
    let facts = format!("run play\nnode b\niteration 1\ncommit {pending}\nverdict reject\n\nNot yet.");
    assert_eq!(review.text, facts);
    let base64 = review.signature.as_deref().expect("it is signed");
    let armored = format!("-----BEGIN SSH SIGNATURE-----\n{base64}\n-----END SSH SIGNATURE-----\n");
    fs::write(waiting.path("sig"), armored).expect("it can be written");
    fs::write(waiting.path("text"), &review.text).expect("it can be written");
    let signers = waiting.path("ann.reviewers");
    let sig = waiting.path("sig");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-Y", "verify", "-n", "runner-review", "-f", &signers, "-I", "ann@example.org", "-s", &sig]);
    let text = fs::File::open(waiting.path("text")).expect("it is there");
    assert!(keygen.stdin(text).stdout(Stdio::null()).status().expect("ssh-keygen runs").success());
}

#[test]
fn a_word_of_somebody_else_or_on_something_else_does_not_count() {
    let mut waiting = WaitingReview::new();
    waiting.play.home.expect_forgery();
    waiting.set_signing(KEY, &waiting.path("ann"));
    waiting.review(&["reject", "Not yet."]).exits(0);
    waiting.wait_again();
    let raw = waiting.play.repo.git(&["log", "-1", "--format=%B", &format!("{BRANCH}~1")]);
    let of_before = raw.lines().find_map(|line| line.strip_prefix("Runner-Signature: ")).expect("it is signed");
    assert!(raw.contains("\nRunner-Review: reject\nRunner-Signature: U1NIU0lH"), "{raw}");

    // A person who uses their own program to steer has no signature of this decision.
    let at = || AtRun { path: waiting.play.repo.path().into(), run: None };
    let client = waiting.play.client();
    let last = client.run(waiting.play.repo.path()).recent[0].iter;
    let rejected = |signature: Option<&str>| {
        let params = RejectParams {
            at: at(),
            iteration: last,
            reason: "Not yet.".into(),
            signature: signature.map(str::to_owned),
        };
        client.wait(client.rpc().reject(params)).expect_err("it is refused").to_string()
    };
    assert!(rejected(None).contains("takes only a signed review of task b"), "{}", rejected(None));
    let not_this = "the signature is not of this decision on task b of iteration 0003";
    assert!(rejected(Some(of_before)).contains(not_this), "{}", rejected(Some(of_before)));
    assert!(rejected(Some("U1NIU0lHAAAA")).contains(not_this));
    assert!(rejected(Some("nonsense")).contains("expected a signature of SSH's"));

    waiting.review(&["approve"]).exits(0);
    waiting.finish();
    let raw = waiting.play.repo.git(&["cat-file", "commit", BRANCH]) + "\n";
    let own = raw.lines().find(|line| line.starts_with("Runner-Signature: ")).expect("it is signed");
    waiting.replace_tip(&raw.replace(own, &format!("Runner-Signature: {of_before}")));
    let found = waiting.verify_with("ann");
    let findings: Vec<_> = found.findings.iter().map(|finding| (finding.rule, finding.found.as_str())).collect();
    assert_eq!(findings, [(AuditRule::Signed, "a signature of something else, or of a revoked key")]);
    let without = parse_report(&waiting.ctl(&["verify", "--run", "play", "--json"]));
    assert_eq!(without.findings, [], "whose it is, is not asked");
    waiting.replace_tip(&raw.replace(&format!("{own}\n"), ""));
    let without = parse_report(&waiting.ctl(&["verify", "--run", "play", "--json"]));
    assert!(without.findings.iter().any(|finding| finding.rule == AuditRule::Selection), "{:?}", without.findings);
}

#[test]
fn a_word_is_about_the_iteration_though_commits_are_between_and_a_fork_has_it_too() {
    let waiting = WaitingReview::new();
    let repo = &waiting.play.repo;
    let client = waiting.play.client();
    waiting.set_signing(KEY, &waiting.path("ann"));
    waiting.ctl(&["cancel"]).exits(0);
    waiting.ctl(&["fork", "--from", "1", "--id", "again"]).exits(0);
    client.wait_for(repo.path(), RunStatus::Waiting);
    repo.write("more.txt", "more\n").commit("More");
    waiting.ctl(&["note", "Take care."]).exits(0);
    waiting.ctl(&["approve", "--iter", "1"]).exits(0);
    waiting.wait_again();
    let file = waiting.path("ann.reviewers");
    let verified = waiting.ctl(&["verify", "--run", "again", "--reviewers", &file]);
    assert!(verified.exits(0).stdout.contains("1 review by people, signed by ann@example.org"), "{}", verified.stdout);

    // A node that passes without a person's decision does not count as reviewed.
    waiting.ctl(&["config", "set", "review.by", "off"]).exits(0);
    waiting.ctl(&["resume", "--more", "1", "--wait"]).exits(4);
    let found = parse_report(&waiting.ctl(&["verify", "--run", "again", "--reviewers", &file, "--json"]));
    let findings: Vec<_> = found.findings.iter().map(|finding| (finding.rule, finding.found.as_str())).collect();
    assert_eq!(findings, [(AuditRule::Signed, "a pass without one")]);
    assert_eq!(found.reviewed.map(|signed| (signed.held, signed.commits)), Some((1, 1)));
}
