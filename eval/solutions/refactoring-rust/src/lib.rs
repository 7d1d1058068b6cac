//! Lines of delimited text.

/// Returns a line of CSV.
pub fn csv_line(fields: &[&str]) -> String {
    line(fields, ',')
}

/// Returns a line with semicolons, as some spreadsheets want it.
pub fn semicolon_line(fields: &[&str]) -> String {
    line(fields, ';')
}

/// Returns a line with tabs.
pub fn tab_line(fields: &[&str]) -> String {
    line(fields, '\t')
}

fn line(fields: &[&str], delimiter: char) -> String {
    let fields: Vec<String> = fields.iter().map(|field| escaped(field, delimiter)).collect();
    fields.join(&delimiter.to_string())
}

fn escaped(field: &str, delimiter: char) -> String {
    if field.contains(&[delimiter, '"', '\n', '\r'][..]) {
        format!("\"{}\"", field.replace('"', r#""""#))
    } else {
        field.to_string()
    }
}
