//! A name, an address and a date in the header of a commit: what the runner writes, and whether text is that.

/// Replaces a name or an address that is empty.
const DEFAULT_FIELD: &str = "runnerd";
/// Largest distance of a time zone from UTC, in hours.
const MAX_ZONE_HOURS: u32 = 24;

/// Returns a name or an address as it is written: without what would end it early, or the line.
pub fn clean_ident_field(field: &str) -> String {
    let cleaned: String = field.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\r' | '\0')).collect();
    let trimmed = cleaned.trim();
    if trimmed.is_empty() { DEFAULT_FIELD.to_owned() } else { trimmed.to_owned() }
}

/// Whether this is `Name <email> seconds zone` as the runner writes it. Git reads many other forms.
pub(super) fn is_ident(ident: &[u8]) -> bool {
    split_ident(ident).is_some_and(|([name, email], date)| {
        let is_clean = |field: &str| clean_ident_field(field) == field;
        is_clean(name) && is_clean(email) && date.split_once(' ').is_some_and(|(time, zone)| is_date(time, zone))
    })
}

/// Splits off the date.
pub(super) fn split_ident(ident: &[u8]) -> Option<([&str; 2], &str)> {
    let (name, rest) = str::from_utf8(ident).ok()?.split_once(" <")?;
    let (email, date) = rest.split_once("> ")?;
    Some(([name, email], date))
}

fn is_date(time: &str, zone: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_ok();
    let is_padded = time.len() > 1 && time.starts_with('0');
    let (sign, digits) = zone.split_at_checked(1).unwrap_or_default();
    let Some((hours, minutes)) = digits.split_at_checked(2).filter(|_| is_number(digits) && digits.len() == 4) else {
        return false;
    };
    let is_within = hours.parse().is_ok_and(|hours: u32| hours <= MAX_ZONE_HOURS) && minutes < "60";
    is_number(time) && !is_padded && is_within && matches!(sign, "+" | "-") && zone != "-0000"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_dates_that_the_runner_does_not_write_are_none_of_its() {
        for honest in ["P <p@x> 1 +0000", "A B. <a b@x> 1700000000 -0930", "Ä \" <p> 0 +1400", "A\tB <p> 7 +2400"] {
            assert!(is_ident(honest.as_bytes()), "{honest}");
        }
        let forged = [
            "P  <p@x> 1 +0000",
            " P <p@x> 1 +0000",
            "P\r <p@x> 1 +0000",
            "P\u{a0} <p@x> 1 +0000",
            "P <p@x > 1 +0000",
            "P < p@x> 1 +0000",
            "P <p@x>  1 +0000",
            "P <p@x> \t1 +0000",
            "P <p@x> 01 +0000",
            "P <p@x> 1 +9999",
            "P <p@x> 1 +0060",
            "P <p@x> 1 -0000",
            "P <p@x> 1 0000",
            "P <p@x> 1 +0000 ",
            "P <p@x> +1 +0000",
            "P <p<@x> 1 +0000",
            " <p@x> 1 +0000",
        ];
        for ident in forged {
            assert!(!is_ident(ident.as_bytes()), "{ident:?}");
        }
        assert!(!is_ident(b"\xff <p@x> 1 +0000"));
    }
}
