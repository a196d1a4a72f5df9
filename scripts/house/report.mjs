// Formats the metrics as a table, and the offenders of a row as lines.

/** The rows with a range. The ranges are the field's, from the writing guide. */
const LANGUAGE = [
  ["names", "function names that begin with a verb", "verbPercent", " %", "≥ 65 %"],
  ["of", "function names with `Of`", "ofPercent", " %", "0 %"],
  ["comments", "comments that begin with a clause (What, Who, Whether, Where, How)", "clausePercent", " %", "≤ 2 %"],
  ["relatives", "that, which, what per 100 words of comment", "relativesPer100", "", "≤ 1.9"],
  ["pronouns", "it, they, those, one per 100 words of comment", "pronounsPer100", "", "≤ 2.0"],
  ["nouns", "technical nouns per 100 words of comment", "nounsPer100", "", "≥ 10"],
];

const STRUCTURE = [
  [
    "long",
    "functions over 60 lines",
    ({ longFunctions, longPercent }) => `${longFunctions} (${longPercent.toFixed(1)} %)`,
  ],
  ["very-long", "functions over 150 lines", ({ veryLongFunctions }) => veryLongFunctions],
  ["parameters", "functions with more than 4 parameters", ({ manyParameters }) => manyParameters],
  ["booleans", "functions with a boolean positional parameter", ({ booleanPositionals }) => booleanPositionals],
  ["folders", "folders with more than 30 files", ({ largeFolders }) => largeFolders],
  ["rings", "import rings, types counted", ({ rings, largestRing }) => `${rings} (largest: ${largestRing} files)`],
  [
    "order",
    "imports of core against the order of folders and rooms",
    (metrics) => `${metrics.backwardImports} of ${metrics.coreImports}`,
  ],
  ["rooms", "folders and rooms of core that the order does not name", ({ unknownRooms }) => unknownRooms],
];

/** Rows with details below the table, and the most lines of each. */
const DETAILS = [
  ["long", "Longest functions", 10],
  ["parameters", "More than 4 parameters", 20],
  ["booleans", "Boolean positional parameters", 20],
  ["folders", "More than 30 files", 20],
];

const TEXT_WIDTH = 110;

/** Lists the rows that `--list` accepts. */
export function listRows() {
  return [...LANGUAGE, ...STRUCTURE].map(([row]) => row);
}

export function formatTable(metrics, offenders) {
  const rows = [
    [`code house: ${metrics.files} files`, "value", "range", "--list"],
    ...LANGUAGE.map(([row, title, key, unit, range]) => [title, `${metrics[key].toFixed(1)}${unit}`, range, row]),
    ...STRUCTURE.map(([row, title, format]) => [title, String(format(metrics)), "", row]),
  ];
  const rooms = Object.entries(metrics.rooms).map(([room, files]) => `  ${String(files).padStart(3)}  ${room}`);
  return [
    ...alignColumns(rows),
    "",
    "Files per room of core/src/run",
    ...rooms,
    ...DETAILS.flatMap(([row, title, most]) => formatDetail(row, title, offenders[row], most)),
  ].join("\n");
}

/** Formats an offender as one line, and a ring as one line per file. */
export function formatList(entries) {
  return entries.map(formatEntry).join("\n");
}

function formatDetail(row, title, entries, most) {
  if (entries.length === 0) return [];
  const rest = entries.length > most ? [`  … ${entries.length - most} more: --list ${row}`] : [];
  return ["", title, ...entries.slice(0, most).map((entry) => `  ${formatEntry(entry)}`), ...rest];
}

function formatEntry(entry) {
  if (typeof entry === "string") return entry;
  if (Array.isArray(entry)) return [`ring of ${entry.length} files`, ...entry.map((path) => `  ${path}`)].join("\n");
  if (entry.from !== undefined) return `${entry.from}:${entry.line}  imports ${entry.to}`;
  if (entry.files !== undefined) return `${String(entry.files).padStart(4)}  ${entry.path}`;
  const count = entry.count === undefined ? "" : `${String(entry.count).padStart(4)}  `;
  const place = `${entry.path}:${entry.line}`;
  return `${count}${place}  ${entry.name ?? cutText(entry.text)}`;
}

function cutText(text) {
  return text.length > TEXT_WIDTH ? `${text.slice(0, TEXT_WIDTH - 1)}…` : text;
}

/** Pads the first column to the right and the others to the left. */
function alignColumns(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 1 ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
      .join("  ")
      .trimEnd(),
  );
}
