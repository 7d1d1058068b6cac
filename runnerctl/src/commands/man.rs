//! `man`: generates the manual pages from the `--help` texts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use serde::Serialize;

use crate::args;
use crate::commands::help;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::sanitize::sanitize;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  runnerctl man ~/.local/share/man/man1    then: man runnerctl-start
  runnerctl man                            the first page, to stdout";

/// Write the manual pages
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Directory for the pages, one per command [default: print the first page]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[derive(Serialize)]
struct ManPages {
    folder: WirePath,
    pages: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(invocation: &Invocation<'_>, args: &ManArgs) -> Result<ExitStatus, Failure> {
    let pages = render_pages().map_err(|error| Failure::io("writing the manual pages", &error))?;
    let Some(folder) = &args.folder else {
        let (_, first) = pages.first().expect("BUG: the program has no page");
        Ui::print_verbatim(first)?;
        return Ok(ExitStatus::Success);
    };
    let folder = invocation.resolve_local(Some(folder))?;
    let failed = |path: &Path, error: &io::Error| Failure::io(format!("writing {}", path.display()), error);
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for (name, text) in &pages {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, &error))?;
    }
    let message = format!("{} pages in {}\n", pages.len(), sanitize(&folder.display().to_string()));
    let names = pages.into_iter().map(|(name, _)| name).collect();
    invocation.ui.print_answer("man", &ManPages { folder: WirePath(folder), pages: names }, |_| message)?;
    Ok(ExitStatus::Success)
}

/// Returns each page with its file name, the program's first.
fn render_pages() -> io::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    add_pages(&args::build_documented_command(), &[], &mut pages)?;
    Ok(pages)
}

fn add_pages(command: &Command, parents: &[&str], pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let command_path = [parents, &[command.get_name()]].concat();
    let name = command_path.join("-");
    pages.push((format!("{name}.1"), render_page(command, &command_path)?));
    for subcommand in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(subcommand, &command_path, pages)?;
    }
    Ok(())
}

/// Returns the manual page of a command. Options common to all commands are only in the program's page.
fn render_page(command: &Command, command_path: &[&str]) -> io::Result<String> {
    let is_first = command_path.len() == 1;
    let visible = command.clone().mut_args(|arg| if arg.is_global_set() && !is_first { arg.hide(true) } else { arg });
    let man = Man::new(visible).source(format!("runnerctl {}", env!("CARGO_PKG_VERSION"))).manual("runnerctl");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis_section(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        commands_section(command, command_path).to_writer(&mut text)?;
    }
    let extra = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    help_sections(&extra).to_writer(&mut text)?;
    if is_first { exit_status_section() } else { see_also_section() }.to_writer(&mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

fn synopsis_section(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]).text([roman(usage)]);
    section
}

/// Lists the subcommands of a command, each with its page.
fn commands_section(command: &Command, command_path: &[&str]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["COMMANDS"]);
    for subcommand in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let page = format!("{}-{}", command_path.join("-"), subcommand.get_name());
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        section.control("TP", []).text([bold(page), roman("(1)")]).text([roman(about)]);
    }
    section
}

/// Makes a section of each paragraph with a heading; the text below it keeps its lines.
fn help_sections(text: &str) -> Roff {
    let mut section = Roff::new();
    for block in text.split("\n\n") {
        match block.split_once(":\n") {
            Some((heading, lines)) if !heading.contains('\n') => {
                section.control("SH", [heading.to_uppercase().as_str()]);
                section.control("nf", []).text([roman(lines.trim_end_matches('\n'))]).control("fi", []);
            }
            _ => {
                section.control("PP", []).text([roman(block)]);
            }
        }
    }
    section
}

fn exit_status_section() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in ExitStatus::TABLE {
        let meaning = format!("{meaning}. Next: {}.", help::next_step_for(*status));
        section.control("TP", []).text([bold(status.code().to_string())]).text([roman(meaning)]);
    }
    section
}

fn see_also_section() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["SEE ALSO"]);
    section.text([bold("runnerctl"), roman("(1): global options and exit status.")]);
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_what_its_help_says() {
        let pages = render_pages().expect("pages");
        let page = |name: &str| &pages.iter().find(|(found, _)| found == name).expect(name).1;
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "\"SEE ALSO\""] {
            assert!(page("runnerctl-start.1").contains(&format!(".SH {heading}")), "{}", page("runnerctl-start.1"));
        }
        assert!(page("runnerctl.1").contains("\\fB130\\fR\ninterrupted. Next: "), "{}", page("runnerctl.1"));
        assert!(page("runnerctl-config-set.1").contains("\nrunnerctl config set "));
        assert!(!pages.iter().any(|(name, _)| name.contains("demo-agent")), "a hidden command has a page");
    }

    #[test]
    fn a_line_of_an_example_stays_a_line() {
        insta::assert_snapshot!(help_sections("Examples:\n  a -b\n  .c").to_roff(), @r"
        .SH EXAMPLES
        .nf
          a \-b
          .c
        .fi
        ");
    }
}
