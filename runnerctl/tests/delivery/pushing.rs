//! The branch at the remote: what is pushed, and that commits of others are kept.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::fake::output_text;
use crate::stage::{DeliveryStage, SSH, describe_reply, land_reply, open_pr_json, own_part};

#[test]
fn a_branch_is_pushed_and_offered_as_a_draft() {
    let stage = DeliveryStage::new();
    let output = stage.deliver(&[]);
    insta::assert_snapshot!(output_text(&output).replace(&stage.local_tip()[..8], "<tip>"), @r"
    run port is deliver/port at origin for main
      22222222 The schema
    pushed <tip>
    opened pull request: https://github.com/o/r/pull/5
    --- stderr
    --- exit 0
    ");
    insta::assert_snapshot!(stage.options(), @r"
    gh
      pr
      list
      --repo=github.com/o/r
      --head=deliver/port
      --state=all
      --limit=50
      --json=number,url,state,isDraft,title,body,isCrossRepository
    gh
      pr
      list
      --repo=github.com/o/r
      --head=deliver/port
      --state=all
      --limit=50
      --json=number,url,state,isDraft,title,body,isCrossRepository
    gh
      pr
      create
      --repo=github.com/o/r
      --head=deliver/port
      --base=main
      --title=Port the store
      --body-file=…/description.md
      --draft
    ");
    assert_eq!(stage.remote_tip(), stage.local_tip());
    assert_eq!(fs::read_to_string(stage.path("forge/body")).expect("a description"), own_part("What was asked"));
    let land = &stage.daemon.requests_of("land.run")[0];
    let main = stage.run_git(&["rev-parse", "main"]);
    assert_eq!((&land["onto"], &land["from"], &land["form"]), (&json!("deliver/port"), &json!(main), &json!("leaves")));
    assert_eq!(stage.run_git_in("remote.git", &["for-each-ref", "--format=%(refname)"]).lines().count(), 2);
}

#[test]
fn the_same_command_again_pushes_what_is_new_and_keeps_what_people_wrote() {
    let stage = DeliveryStage::new();
    stage.deliver(&[]);
    stage.write_reply("list", &open_pr_json(&format!("Closes #4\n\n{}\nSeen by Bob.", own_part("old"))));
    let output = stage.deliver(&["--ready"]);
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    assert!(output_text(&output).contains("nothing new to push"), "{}", output_text(&output));
    let body = fs::read_to_string(stage.path("forge/body")).expect("a description");
    assert_eq!(body, format!("Closes #4\n\n{}\n\nSeen by Bob.", own_part("What was asked").trim_end()));
    let options = stage.options();
    assert!(
        options.contains("--method=PATCH") && options.ends_with("gh\n  pr\n  ready\n  5\n  --repo=github.com/o/r"),
        "{options}"
    );
    assert!(
        !options.contains("Port the store\n  --body-file=…/description.md\n  --draft\ngh\n  pr\n  create"),
        "{options}"
    );
    stage.run_git(&["switch", "-q", "deliver/port"]);
    stage.commit("c", "The queries");
    stage.deliver(&[]);
    assert_eq!(stage.remote_tip(), stage.local_tip());
}

#[test]
fn a_branch_is_pushed_to_a_mirror_remote_alone() {
    let stage = DeliveryStage::new();
    stage.run_git(&["config", "remote.origin.mirror", "true"]);
    stage.deliver(&[]);
    assert_eq!(stage.remote_tip(), stage.local_tip());
    assert_eq!(stage.run_git_in("remote.git", &["for-each-ref", "--format=%(refname)"]).lines().count(), 2);
}

#[test]
fn what_has_landed_is_said_and_nothing_is_pushed() {
    let stage = DeliveryStage::with_replies(describe_reply(), land_reply("already_landed"));
    stage.run_git(&["branch", "-f", "deliver/port", "main"]);
    let output = stage.deliver(&[]);
    insta::assert_snapshot!(output_text(&output), @r"
    run port has landed on main at origin before; nothing was pushed
    --- stderr
    --- exit 0
    ");
    assert_eq!(stage.remote_tip(), "");
    assert!(!stage.requests_made().contains("create"), "{}", stage.requests_made());
}

/// Gives the remote another fetch address, at which no one has delivered `deliver/port`.
fn set_other_fetch_url(stage: &DeliveryStage) {
    stage.run_git(&["clone", "-q", "--bare", ".", "../upstream.git"]);
    stage.run_git(&["remote", "set-url", "--push", "origin", "ssh://git@github.com/o/r.git"]);
    stage.run_git(&["remote", "set-url", "origin", "../upstream.git"]);
    stage.run_git_in("upstream.git", &["branch", "-f", "main", "deliver/port"]);
}

#[test]
fn what_is_pushed_to_is_what_is_looked_at_where_a_remote_is_fetched_from_elsewhere() {
    let stage = DeliveryStage::new();
    set_other_fetch_url(&stage);
    let output = stage.deliver(&[]);
    assert!(
        output_text(&output).contains("pushed ") && output_text(&output).contains("/o/r/pull/5"),
        "{}",
        output_text(&output)
    );
    assert_eq!(stage.remote_tip(), stage.local_tip());
    let main = stage.run_git_in("remote.git", &["rev-parse", "main"]);
    assert_eq!(stage.daemon.requests_of("land.run")[0]["from"], json!(main), "the base is the one that takes it");
    assert!(output_text(&stage.deliver(&[])).contains("nothing new to push"));
    // Commits that others have pushed there are integrated.
    stage.run_git(&["clone", "-q", "-b", "deliver/port", "../remote.git", "../colleague"]);
    stage.run_git_in("colleague", &["commit", "-q", "--allow-empty", "-m", "Fix a typo"]);
    stage.run_git_in("colleague", &["push", "-q", "origin", "deliver/port"]);
    assert!(output_text(&stage.deliver(&[])).contains("took in what others have pushed"), "it is a fast-forward");
    stage.run_git_in("colleague", &["commit", "-q", "--allow-empty", "-m", "Another"]);
    stage.run_git_in("colleague", &["push", "-q", "origin", "deliver/port"]);
    let theirs = stage.remote_tip();
    stage.run_git(&["switch", "-q", "deliver/port"]);
    stage.commit("c", "The queries");
    let output = output_text(&stage.deliver(&[]));
    assert!(output.contains(r#"hint: git fetch "$(git remote get-url --push origin)" deliver/port"#), "{output}");
    assert_eq!(stage.remote_tip(), theirs);
}

#[test]
fn an_address_that_is_rewritten_for_pushes_is_the_one_that_counts() {
    let stage = DeliveryStage::new();
    stage.run_git(&["remote", "set-url", "origin", "https://forge.invalid/o/r.git"]);
    stage.run_git(&["config", "url.ssh://git@github.com/.pushInsteadOf", "https://forge.invalid/"]);
    // The result of a rewrite is not rewritten again.
    stage.run_git(&["config", "url.https://elsewhere.invalid/.insteadOf", "ssh://git@github.com/"]);
    let output = output_text(&stage.deliver(&[]));
    assert!(output.contains("opened pull request: https://github.com/o/r/pull/5"), "{output}");
    assert_eq!(stage.remote_tip(), stage.local_tip());
}

#[test]
fn a_remote_with_several_addresses_to_push_to_is_refused() {
    let stage = DeliveryStage::new();
    for address in ["ssh://git@github.com/o/r.git", "../other.git"] {
        stage.run_git(&["remote", "set-url", "--push", "--add", "origin", address]);
    }
    insta::assert_snapshot!(output_text(&stage.deliver(&[])), @r"
    --- stderr
    error: the remote origin is pushed to several addresses: one is needed for a delivery

    hint: git remote get-url --push --all origin
    --- exit 6
    ");
    assert_eq!(stage.remote_tip(), "");
}

#[test]
fn what_a_push_leaves_running_holds_nobody_up() {
    let stage = DeliveryStage::new();
    let gate = stage.path("forge/connection");
    assert!(Command::new("mkfifo").arg(&gate).status().expect("mkfifo runs").success());
    // Like `ssh` with a persistent connection: it holds the streams of its caller.
    stage.write_program("ssh", &SSH.replace("exec ", "(read -r line < \"$FORGE/connection\") & exec "));
    let output = stage.deliver(&["--base", "main"]);
    let is_held = fs::OpenOptions::new().write(true).custom_flags(nix::libc::O_NONBLOCK).open(&gate).is_ok();
    assert!(is_held, "it is running still, and ends now");
    assert!(output_text(&output).contains("opened pull request"), "{}", output_text(&output));
    assert_eq!(stage.remote_tip(), stage.local_tip());
}

#[test]
fn row_110_a_delivery_that_was_killed_before_its_request_is_brought_to_its_end() {
    let stage = DeliveryStage::new();
    let gate = stage.path("forge/gate");
    let made = Command::new("mkfifo").arg(&gate).status().expect("mkfifo runs");
    assert!(made.success());
    let mut client = stage.client(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs");
    let mut line = String::new();
    BufReader::new(fs::File::open(&gate).expect("the other end writes")).read_line(&mut line).expect("it can be read");
    client.kill().expect("is killed");
    client.wait().expect("is gone");
    assert_eq!(stage.remote_tip(), stage.local_tip(), "the branch was pushed");
    fs::remove_file(&gate).expect("the gate goes");
    let output = stage.deliver(&[]);
    assert!(
        output_text(&output).contains("opened pull request: https://github.com/o/r/pull/5"),
        "{}",
        output_text(&output)
    );
    assert_eq!(stage.remote_tip(), stage.local_tip());
}

/// The folders that deliveries have created and not removed.
fn list_temp_dirs(stage: &DeliveryStage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.display().to_string().contains("/runnerctl-deliver-")).collect()
}

/// A remote that accepts everything and never replies, until its client is gone.
fn hanging_ssh() -> String {
    let hangs = "case $last in git-receive-pack*) exec 3> \"$FORGE/connection\"; echo >&3; cat > /dev/null; exit ;; esac\nexec ";
    SSH.replace("exec ", hangs)
}

mod slow {
    use super::*;

    #[test]
    fn a_push_that_is_never_answered_is_named_and_ends_with_the_delivery() {
        let stage = DeliveryStage::new();
        stage.write_program("ssh", &hanging_ssh());
        let gate = stage.path("forge/connection");
        assert!(Command::new("mkfifo").arg(&gate).status().expect("mkfifo runs").success());
        let mut client = stage.client(&["--base", "main"]);
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("runs");
        let _connection = fs::File::open(&gate).expect("the other end writes");
        let told = BufReader::new(client.stderr.take().expect("it is a pipe")).lines();
        let told = told.map(|line| line.expect("a line")).find(|line| line.contains("no answer"));
        assert_eq!(told.as_deref(), Some("git push has given no answer for 10 s; Ctrl-C ends it"));
        let began = Instant::now();
        kill(Pid::from_raw(i32::try_from(client.id()).expect("a number")), Signal::SIGINT).expect("it is there");
        client.wait().expect("is gone");
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    }
}

#[test]
fn a_push_ends_with_the_delivery_that_is_ended_and_its_folder_goes() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let stage = DeliveryStage::new();
        let gate = stage.path("forge/connection");
        assert!(Command::new("mkfifo").arg(&gate).status().expect("mkfifo runs").success());
        stage.write_program("ssh", &hanging_ssh());
        let mut client = stage.client(&["--base", "main"]);
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs");
        let mut connection = BufReader::new(fs::File::open(&gate).expect("the other end writes"));
        connection.read_line(&mut String::new()).expect("it is pushing");
        kill(Pid::from_raw(i32::try_from(client.id()).expect("a number")), signal).expect("it is there");
        client.wait().expect("is gone");
        connection.read_to_end(&mut Vec::new()).expect("the push ends too");
        assert_eq!(list_temp_dirs(&stage).len(), usize::from(signal == Signal::SIGKILL), "{signal}");
        for dir in list_temp_dirs(&stage) {
            let aged = Command::new("touch").args(["-d", "2 minutes ago"]).arg(dir).status().expect("touch runs");
            assert!(aged.success());
        }
        stage.write_program("ssh", SSH);
        let output = stage.deliver(&["--base", "main"]);
        assert!(output_text(&output).contains("opened pull request"), "{}", output_text(&output));
        assert_eq!((stage.remote_tip(), list_temp_dirs(&stage)), (stage.local_tip(), Vec::new()), "{signal}");
    }
}

#[test]
fn commits_of_others_are_taken_in_and_never_overwritten() {
    let stage = DeliveryStage::new();
    stage.deliver(&[]);
    stage.run_git(&["clone", "-q", "-b", "deliver/port", "../remote.git", "../colleague"]);
    stage.run_git_in("colleague", &["commit", "-q", "--allow-empty", "-m", "Fix a typo"]);
    stage.run_git_in("colleague", &["push", "-q", "origin", "deliver/port"]);
    let theirs = stage.remote_tip();
    let output = stage.deliver(&[]);
    assert!(
        output_text(&output).contains("took in what others have pushed to deliver/port"),
        "{}",
        output_text(&output)
    );
    assert_eq!((stage.remote_tip(), stage.local_tip()), (theirs.clone(), theirs.clone()));
    stage.run_git_in("colleague", &["commit", "-q", "--allow-empty", "-m", "Another"]);
    stage.run_git_in("colleague", &["push", "-q", "origin", "deliver/port"]);
    let theirs = stage.remote_tip();
    stage.run_git(&["switch", "-q", "deliver/port"]);
    stage.commit("c", "The queries");
    stage.run_git(&["switch", "-q", "main"]);
    let output = stage.deliver(&[]);
    insta::assert_snapshot!(output_text(&output), @r"
    --- stderr
    error: deliver/port at origin has commits that yours has not, and yours has others, or is checked out; theirs are not overwritten, and nothing was pushed

    hint: git fetch origin deliver/port
      git switch deliver/port
      git merge FETCH_HEAD
    --- exit 6
    ");
    assert_eq!(stage.remote_tip(), theirs);
}
