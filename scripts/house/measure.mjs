// Computes the numbers of the table and the offenders of each row.

import { listComments } from "./comments.mjs";
import { listFolderSizes } from "./folders.mjs";
import { listFunctions } from "./functions.mjs";
import { countRooms, findRings, listBackwardImports, listImports } from "./imports.mjs";
import { hasOf, isVerbFirst, listFunctionNames } from "./names.mjs";

const LONG_LINES = 60;
const VERY_LONG_LINES = 150;
const MOST_PARAMETERS = 4;
const MOST_FILES = 30;

/** `metrics` holds numbers only; `offenders` holds, for each row of `--list`, the entries behind its number. */
export function measure(root, packages) {
  const files = packages.flatMap((each) => each.files);
  const names = measureNames(files);
  const comments = measureComments(files);
  const functions = measureFunctions(files);
  const structure = measureStructure(root, packages, files);
  return {
    metrics: {
      files: files.length,
      ...names.metrics,
      ...comments.metrics,
      ...functions.metrics,
      ...structure.metrics,
    },
    offenders: { ...names.offenders, ...comments.offenders, ...functions.offenders, ...structure.offenders },
  };
}

function measureNames(files) {
  const all = listFunctionNames(files);
  const nouns = all.filter(({ name }) => !isVerbFirst(name));
  const withOf = all.filter(({ name }) => hasOf(name));
  return {
    metrics: {
      functionNames: all.length,
      verbPercent: toPercent(all.length - nouns.length, all.length),
      ofNames: withOf.length,
      ofPercent: toPercent(withOf.length, all.length),
    },
    offenders: { names: sortByName(nouns), of: sortByName(withOf) },
  };
}

function measureComments(files) {
  const all = listComments(files);
  const words = sumBy(all, "words");
  const clauses = all.filter(({ beginsWithClause }) => beginsWithClause);
  return {
    metrics: {
      comments: all.length,
      commentWords: words,
      clausePercent: toPercent(clauses.length, all.length),
      relativesPer100: toPercent(sumBy(all, "relatives"), words),
      pronounsPer100: toPercent(sumBy(all, "pronouns"), words),
      nounsPer100: toPercent(sumBy(all, "nouns"), words),
    },
    offenders: {
      comments: clauses,
      relatives: rankBy(all, "relatives"),
      pronouns: rankBy(all, "pronouns"),
      nouns: rankBy(
        all.filter(({ nouns }) => nouns === 0),
        "words",
      ),
    },
  };
}

function measureFunctions(files) {
  const all = listFunctions(files);
  const long = rankBy(all, "lines").filter(({ lines }) => lines > LONG_LINES);
  const veryLong = long.filter(({ lines }) => lines > VERY_LONG_LINES);
  const parameters = rankBy(all, "parameters").filter((each) => each.parameters > MOST_PARAMETERS);
  const booleans = all
    .filter((each) => each.booleans.length > 0)
    .map((each) => ({ ...each, name: `${each.name} (${each.booleans.join(", ")})` }));
  // Thousands of callbacks of one line would hide the long functions in the percentage.
  const multiline = all.filter(({ lines }) => lines > 1);
  return {
    metrics: {
      functions: all.length,
      longFunctions: long.length,
      longPercent: toPercent(long.length, multiline.length),
      veryLongFunctions: veryLong.length,
      manyParameters: parameters.length,
      booleanPositionals: booleans.length,
    },
    offenders: { long, "very-long": veryLong, parameters, booleans },
  };
}

function measureStructure(root, packages, files) {
  const folders = listFolderSizes(root).filter((folder) => folder.files > MOST_FILES);
  const imports = packages.map(listImports);
  const rings = imports.flatMap(findRings).sort((one, other) => other.length - one.length);
  const core = imports[packages.findIndex(({ name }) => name === "core")] ?? [];
  const order = listBackwardImports(core);
  const { rooms, unknown } = countRooms(files);
  return {
    metrics: {
      largeFolders: folders.length,
      rings: rings.length,
      largestRing: rings[0]?.length ?? 0,
      coreImports: core.length,
      backwardImports: order.length,
      rooms,
      unknownRooms: unknown.length,
    },
    offenders: { folders, rings, order, rooms: unknown },
  };
}

/** Percent, or the count per 100 words, rounded to two digits. */
function toPercent(part, whole) {
  return whole === 0 ? 0 : Math.round((part / whole) * 10_000) / 100;
}

function sumBy(entries, key) {
  return entries.reduce((sum, entry) => sum + entry[key], 0);
}

/** Entries with a count above 0, the highest first. */
function rankBy(entries, key) {
  return entries
    .filter((entry) => entry[key] > 0)
    .map((entry) => ({ ...entry, count: entry[key] }))
    .sort((one, other) => other.count - one.count);
}

function sortByName(entries) {
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}
