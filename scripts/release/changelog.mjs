// CHANGELOG.md: the section "Unreleased" becomes the section of a version. Branches add lines with the merge driver
// `union`, which may repeat a heading; the section of a version has each heading once.

const headings = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/** Returns the lines below the heading `## <name>` up to the next version; undefined without the heading. */
export function readSection(text, name) {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => line === `## ${name}` || line.startsWith(`## ${name} - `));
  if (start < 0) return undefined;
  const end = lines.findIndex((line, index) => index > start && line.startsWith("## "));
  return lines.slice(start + 1, end < 0 ? lines.length : end);
}

/** Groups the entries of a section by heading, in the order of Keep a Changelog; an entry may have several lines. */
export function groupEntries(section) {
  const groups = new Map(headings.map((heading) => [heading, []]));
  let entries;
  for (const line of section) {
    if (line.startsWith("### ")) entries = getEntries(groups, line.slice("### ".length).trim());
    else if (line.trim() === "") continue;
    else if (entries === undefined)
      throw new Error(`CHANGELOG.md: expected a heading such as "### Added" before "${line}". Add the heading.`);
    else if (line.startsWith("- ")) entries.push(line);
    else entries.push(`${takeLast(entries, line)}\n${line}`);
  }
  return new Map([...groups].filter(([, list]) => list.length > 0).map(([name, list]) => [name, [...new Set(list)]]));
}

/**
 * Moves the entries of "Unreleased" to a section for the version, and leaves an empty "Unreleased" section. Throws an
 * error if there are no entries, or if the version has a section.
 */
export function createVersionSection(text, { version, date }) {
  if (readSection(text, version) !== undefined)
    throw new Error(`CHANGELOG.md: expected no section "${version}", got one. Choose a newer version.`);
  const unreleased = readSection(text, "Unreleased");
  const groups = groupEntries(unreleased ?? []);
  if (groups.size === 0)
    throw new Error(
      'CHANGELOG.md: expected entries under "Unreleased", got none. Add a line for each visible change of this version.',
    );
  const notes = formatEntries(groups);
  const [before, after] = text.split(`## Unreleased\n${unreleased.join("\n")}`);
  const older = after.trim() === "" ? "" : `\n${after.trimStart()}`;
  return { text: `${before}## Unreleased\n\n## ${version} - ${date}\n\n${notes}${older}`, notes };
}

/** Writes each heading once, with its entries. */
function formatEntries(groups) {
  const parts = [...groups].map(([heading, entries]) => `### ${heading}\n\n${entries.join("\n")}\n`);
  return parts.join("\n");
}

function getEntries(groups, heading) {
  const entries = groups.get(heading);
  if (entries !== undefined) return entries;
  throw new Error(
    `CHANGELOG.md: expected a heading of Keep a Changelog, got "${heading}". Use one of: ${headings.join(", ")}.`,
  );
}

function takeLast(entries, line) {
  const last = entries.pop();
  if (last !== undefined) return last;
  throw new Error(`CHANGELOG.md: expected an entry that begins with "- ", got "${line}". Add the dash.`);
}
