//! `verify --signers`: a branch with signed commits, checked against keys named by the verifier.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use protocol::verify::{AuditFinding, AuditReport, AuditRule};

use runner_testkit::{Home, binary};

use crate::audits::parse_report;
use crate::play::{RunPlay, sample};

const BRANCH: &str = "refs/heads/runner/play";

/// A branch of two signed iterations, and the key that signed it.
struct SignedRun {
    play: RunPlay,
}

impl SignedRun {
    fn new() -> Self {
        let play =
            RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2").section("[git]\nsign = true\n"));
        let signed = Self { play };
        signed.make_key("runner");
        signed.make_key("other");
        signed.set_global("gpg.format", "ssh");
        signed.set_global("user.signingkey", &signed.path("runner"));
        signed.play.script().always("echo $n > \"file$n\"\nanswer done 'Done.'");
        signed.play.run().exits(4);
        signed
    }

    fn path(&self, name: &str) -> String {
        self.play.home.path().join(name).display().to_string()
    }

    fn set_global(&self, key: &str, value: &str) {
        self.play.repo.git(&["config", "--global", key, value]);
    }

    /// Creates a key, and a file that names it.
    fn make_key(&self, name: &str) {
        let path = self.path(name);
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "kit", "-f", &path]).status();
        assert!(made.expect("ssh-keygen runs").success());
        let public = fs::read_to_string(format!("{path}.pub")).expect("a key has a public half");
        self.write_signers(name, &format!("{name}@example.org namespaces=\"git\" {public}"));
    }

    fn write_signers(&self, name: &str, text: &str) {
        fs::write(self.path(&format!("{name}.signers")), text).expect("a file can be written");
    }

    /// Returns the findings of verify with the keys named in a file.
    fn verify_with(&self, name: &str) -> AuditReport {
        let file = self.path(&format!("{name}.signers"));
        parse_report(
            &self.play.home.ctl_in(&self.play.repo, &["verify", "--run", "play", "--signers", &file, "--json"]),
        )
    }

    /// Returns the only finding, which is about the last commit.
    #[track_caller]
    fn fault(&self) -> String {
        let report = self.verify_with("runner");
        let [AuditFinding { commit, rule: AuditRule::Signed, iter: Some(2), found, .. }] = &report.findings[..] else {
            panic!("not one finding: {report:#?}")
        };
        assert_eq!(*commit, self.play.repo.git(&["rev-parse", BRANCH]));
        found.clone()
    }

    /// Replaces the last commit.
    fn replace_tip(&self, change: impl Fn(&str) -> String) {
        let raw = self.play.repo.git(&["cat-file", "commit", BRANCH]) + "\n";
        let mut git = Command::new("git");
        git.args(["hash-object", "-t", "commit", "-w", "--stdin"]).current_dir(self.play.repo.path());
        let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
        git.stdin.take().expect("a pipe").write_all(change(&raw).as_bytes()).expect("git reads");
        let id = git.wait_with_output().expect("git ends").stdout;
        let id = String::from_utf8(id).expect("an id is text");
        self.play.repo.git(&["update-ref", BRANCH, id.trim()]);
    }
}

/// Returns the signature in a commit, with the name of its header.
fn signature(raw: &str) -> &str {
    let from = raw.find("gpgsig ").expect("it is signed");
    let end = " -----END SSH SIGNATURE-----\n";
    &raw[from..raw.find(end).expect("the signature ends") + end.len()]
}

#[test]
fn each_commit_of_the_runner_is_signed_by_a_key_that_was_named() {
    let signed = SignedRun::new();
    let found = signed.verify_with("runner");
    let signed_commits = found.signed.expect("it was asked");
    assert_eq!(
        (signed_commits.held, signed_commits.commits, &found.findings[..]),
        (3, 3, &[][..]),
        "a start and two iterations"
    );
    assert!(signed_commits.by[0].starts_with("runner@example.org SHA256:"), "{:?}", signed_commits.by);
    let file = signed.path("runner.signers");
    let text = signed.play.home.ctl_in(&signed.play.repo, &["verify", "--signers", &file]);
    assert!(text.exits(0).stdout.contains("3 commits of the runner, signed by runner@example.org"), "{}", text.stdout);
    assert_eq!(parse_report(&signed.play.home.ctl_in(&signed.play.repo, &["verify", "--json"])).signed, None);
    let missing = signed.play.home.ctl_in(&signed.play.repo, &["verify", "--signers", "no-such-file"]);
    assert!(missing.exits(1).stderr.contains("no-such-file"), "{}", missing.stderr);
}

#[test]
fn a_key_that_was_not_named_or_not_for_that_date_signs_nothing() {
    let signed = SignedRun::new();
    signed.write_signers("none", "");
    let public = fs::read_to_string(signed.path("runner.pub")).expect("a key");
    signed.write_signers("past", &format!("runner@example.org valid-before=\"20200101\" {public}"));
    signed.write_signers("elsewhere", &format!("runner@example.org namespaces=\"file\" {public}"));
    for name in ["other", "none", "past", "elsewhere"] {
        let found = signed.verify_with(name);
        let rules: Vec<AuditRule> = found.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [AuditRule::Signed; 3], "{name}: {:#?}", found.findings);
        assert_eq!(found.signed.map(|signed| signed.held), Some(0), "{name}");
    }
    // The run was started before that time.
    assert_eq!(signed.verify_with("runner").findings, []);
    signed.set_global("gpg.ssh.revocationFile", &signed.path("runner.pub"));
    assert_eq!(signed.verify_with("runner").findings.len(), 3, "a key that is revoked since");
}

#[test]
fn a_repository_does_not_choose_the_keys_or_the_programs() {
    let signed = SignedRun::new();
    let says = "#!/bin/sh\necho 'Good \"git\" signature for x with ED25519 key SHA256:x'\n";
    signed.play.home.install("liar", says);
    let config = |key: &str, value: &str| signed.play.repo.git(&["config", key, value]);
    config("gpg.ssh.program", &signed.path("bin/liar"));
    config("gpg.ssh.allowedSignersFile", &signed.path("runner.signers"));
    let rules: Vec<AuditRule> = signed.verify_with("other").findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [AuditRule::Signed; 3]);
}

#[test]
fn a_red_guard_that_is_retold_falls_with_signers_alone() {
    let mut signed = SignedRun::new();
    signed.play.home.expect_forgery();
    let raw = signed.play.repo.git(&["cat-file", "commit", BRANCH]) + "\n";
    let unsigned = |raw: &str| raw.replace(signature(raw), "");
    // The log of a guard is known only from the runner's record: another digest in its place breaks no rule.
    let retold = |raw: &str| {
        let at =
            raw.find("Runner-Guard: exit=0 sha256:").expect("a guard has run") + "Runner-Guard: exit=0 sha256:".len();
        format!("{}{}{}", &raw[..at], "0".repeat(64), &raw[at + 64..])
    };
    signed.replace_tip(|raw| retold(&unsigned(raw)));
    let without = parse_report(&signed.play.home.ctl_in(&signed.play.repo, &["verify", "--run", "play", "--json"]));
    assert_eq!(without.findings, [], "no unsigned branch shows it");
    assert_eq!(signed.fault(), "no signature");

    signed.replace_tip(|_| retold(&raw));
    assert_eq!(signed.fault(), "a signature of something else, or of a revoked key");
    signed.replace_tip(|_| raw.replace(" -----END SSH SIGNATURE-----\n", ""));
    assert_ne!(signed.fault(), "", "it is cut off");

    // The user's own keyring does not count here.
    signed
        .play
        .home
        .install("gpg", "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] GOODSIG 1 x'\necho '[GNUPG:] TRUST_ULTIMATE'\n");
    signed.set_global("gpg.program", &signed.path("bin/gpg"));
    let pgp = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n";
    signed.replace_tip(|_| raw.replace(signature(&raw), pgp));
    assert_ne!(signed.fault(), "", "it is of another kind");
    // Git prints nothing about a commit with such a header, and exits: the other commits are judged nevertheless.
    signed.replace_tip(|_| raw.replace(signature(&raw), "gpgsig \n"));
    let found = signed.verify_with("runner");
    assert_eq!(found.signed.map(|signed| signed.held), Some(2));
    let is_signed_rule = |finding: &&AuditFinding| finding.rule == AuditRule::Signed;
    let findings: Vec<&str> =
        found.findings.iter().filter(is_signed_rule).map(|finding| finding.found.as_str()).collect();
    assert_eq!(findings, ["a signature that cannot be checked as one of SSH's"]);
    signed.replace_tip(|_| raw.clone());
    assert_eq!(signed.verify_with("runner").findings, []);
}

#[test]
fn a_key_of_the_runners_own_signs_and_no_session_sees_it() {
    let home = Home::new();
    let _daemon = home.daemon();
    let missing = home.ctl(&["daemon", "signing-key"]);
    assert!(missing.exits(1).stderr.contains("hint: runnerctl daemon signing-key --make"), "{}", missing.stderr);
    let made = home.ctl(&["daemon", "signing-key", "--make"]);
    assert!(made.exits(0).stderr.contains("git config --global runner.signingKey /"), "{}", made.stderr);
    let key = home.ctl(&["daemon", "signing-key", "--make", "--json"]).exits(0).json();
    assert_eq!(key["made"], false);
    let file = key["file"].as_str().expect("a path");
    let signer = key["signer"].as_str().expect("a line");
    assert_eq!(made.stdout.trim_end(), signer);

    let repo = home.scripted_repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1").section("[git]\nsign = true\n"));
    // The key that a person signs with is not the runner's.
    for (name, value) in [("gpg.format", "openpgp"), ("user.signingkey", "nobody"), ("runner.signingKey", file)] {
        repo.git(&["config", "--global", name, value]);
    }
    let ctl = binary("runnerctl");
    let asks = format!("'{}' daemon signing-key --make > asked.txt 2>&1", ctl.display());
    let steals = format!("cat '{file}' > seen.txt 2>&1\n{asks}");
    repo.script().always(&format!("{steals}\nanswer done 'Looked.'"));
    home.run(&repo, &["--id", "own"]);
    let signers = home.path().join("signers");
    fs::write(&signers, signer).expect("it can be written");
    let signers = signers.display().to_string();
    let text = home.ctl_in(&repo, &["verify", "--run", "own", "--signers", &signers]);
    assert!(text.exits(0).stdout.contains("2 commits of the runner, signed by runnerd@"), "{}", text.stdout);
    let seen = |file: &str| repo.git(&["show", &format!("runner/own:{file}")]);
    assert!(seen("asked.txt").contains("inside an iteration"), "{}", seen("asked.txt"));
    if home.ctl(&["daemon", "status", "--json"]).exits(0).json()["containment"] == "pidns" {
        assert!(seen("seen.txt").contains("No such file"), "{}", seen("seen.txt"));
    }
}

#[test]
fn what_the_runner_commits_for_people_is_signed_and_a_forged_word_of_theirs_is_not() {
    let mut signed = SignedRun::new();
    signed.play.home.expect_forgery();
    signed.play.home.ctl_in(&signed.play.repo, &["note", "Take care."]).exits(0);
    let found = signed.verify_with("runner");
    assert_eq!((found.signed.map(|signed| signed.held), &found.findings[..]), (Some(4), &[][..]), "and a note");
    let raw = signed.play.repo.git(&["cat-file", "commit", BRANCH]) + "\n";
    assert!(raw.ends_with("\nRunner-Human: note\n"), "{raw}");
    signed.replace_tip(|raw| raw.replace(signature(raw), ""));
    let found = signed.verify_with("runner");
    let findings: Vec<_> =
        found.findings.iter().map(|finding| (finding.rule, finding.iter, finding.found.as_str())).collect();
    assert_eq!(findings, [(AuditRule::Signed, None, "no signature")]);
    // Whatever git reads as such a name is one, in any form.
    for name in ["runner-human: note", "Runner-Human\t: note", "Runner-Human:note"] {
        signed.replace_tip(|_| raw.replace(signature(&raw), "").replace("Runner-Human: note", name));
        let rules: Vec<AuditRule> = signed.verify_with("runner").findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [AuditRule::Form, AuditRule::Signed], "{name}");
    }
    signed.replace_tip(|_| raw.replace(signature(&raw), ""));
    // Without the name of a command it counts as a person's own commit, and is listed as made by hand.
    signed.replace_tip(|raw| raw.replace("\nRunner-Human: note\n", "\nBy hand.\n"));
    let found = signed.verify_with("runner");
    assert_eq!((found.findings, found.people.last().and_then(|by| by.command.clone())), (Vec::new(), None));
}
