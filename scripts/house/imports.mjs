// Measures relative imports: rings, and imports against the order of folders and rooms of packages/core/src.

import { posix } from "node:path";
import { visitNodes } from "./sources.mjs";

const CORE = "packages/core/src/";

/** The folders of core, lowest first: a file imports its own folder and lower ones. */
const FOLDERS = [
  "base",
  "model",
  "state",
  "long-term",
  "tool",
  "define",
  "checkpoint",
  "compile",
  "run",
  "resume",
  "inspect",
];

/** The rooms of core/src/run, lowest first. */
const ROOMS = [
  "kernel",
  "events",
  "conversation",
  "session",
  "journal",
  "superstep",
  "migration",
  "task",
  "model-call",
  "tool-call",
  "loop",
  "machine",
];

/** The files beside the rooms: above all rooms, and without an order of their own. */
const FRONT = ["run.ts", "submit.ts", "launch.ts", "queue.ts", "recover-run.ts", "begin.ts", "outcome.ts"];

/** Lists the relative imports and re-exports of a package, types included: one entry per pair of files. */
export function listImports({ files }) {
  const paths = new Set(files.map(({ path }) => path));
  const imports = new Map();
  for (const { path, program, lineAt } of files) {
    visitNodes(program, (node) => {
      const specifier = node.source?.value;
      if (typeof specifier !== "string" || !specifier.startsWith(".")) return;
      const to = resolveImport(paths, path, specifier);
      const pair = `${path} ${to}`;
      if (to !== undefined && !imports.has(pair)) imports.set(pair, { from: path, to, line: lineAt(node.start) });
    });
  }
  return [...imports.values()];
}

/** Finds the import rings (strongly connected components of at least two files, by Tarjan), the largest first. */
export function findRings(imports) {
  const targets = new Map();
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
  const marks = new Map();
  const stack = [];
  const rings = [];
  const enter = (path) => {
    const mark = { index: marks.size, low: marks.size, open: true };
    marks.set(path, mark);
    stack.push(path);
    for (const target of targets.get(path) ?? []) {
      const seen = marks.get(target);
      if (seen === undefined) mark.low = Math.min(mark.low, enter(target).low);
      else if (seen.open) mark.low = Math.min(mark.low, seen.index);
    }
    if (mark.low === mark.index) {
      const ring = stack.splice(stack.indexOf(path));
      for (const member of ring) marks.get(member).open = false;
      if (ring.length > 1) rings.push(ring.sort());
    }
    return mark;
  };
  for (const path of targets.keys()) if (!marks.has(path)) enter(path);
  return rings.sort((one, other) => other.length - one.length);
}

/** Lists the imports of core from a lower folder or room to a higher one. */
export function listBackwardImports(imports) {
  return imports.filter(({ from, to }) => {
    const importer = findRank(from);
    const imported = findRank(to);
    if (importer === undefined || imported === undefined) return false;
    if (importer.folder !== imported.folder) return imported.folder > importer.folder;
    return imported.room > importer.room;
  });
}

/** Counts the files of each room of core/src/run, and lists the folders and rooms that the order does not name. */
export function countRooms(files) {
  const rooms = Object.fromEntries([...ROOMS, "front"].map((room) => [room, 0]));
  const unknown = new Set();
  for (const { path } of files) {
    if (!path.startsWith(CORE)) continue;
    const [folder, ...rest] = path.slice(CORE.length).split("/");
    if (rest.length === 0) continue;
    if (!FOLDERS.includes(folder)) unknown.add(folder);
    if (folder !== "run") continue;
    const room = getRoom(rest);
    if (room in rooms) rooms[room] += 1;
    else unknown.add(`run/${room}`);
  }
  return { rooms, unknown: [...unknown].sort() };
}

/** The entries of core (core/src/*.ts) rank above all folders. Undefined outside of core and in an unknown folder. */
function findRank(path) {
  if (!path.startsWith(CORE)) return undefined;
  const [folder, ...rest] = path.slice(CORE.length).split("/");
  if (rest.length === 0) return { folder: FOLDERS.length, room: 0 };
  const rank = FOLDERS.indexOf(folder);
  if (rank < 0) return undefined;
  if (folder !== "run") return { folder: rank, room: 0 };
  const room = [...ROOMS, "front"].indexOf(getRoom(rest));
  // NaN compares false both ways: a file in an unknown room has no order with the other rooms.
  return { folder: rank, room: room < 0 ? Number.NaN : room };
}

/** "front" for a front file, the file's own name for another file outside of the rooms. */
function getRoom([first]) {
  return FRONT.includes(first) ? "front" : first;
}

function resolveImport(paths, from, specifier) {
  const path = posix.join(posix.dirname(from), specifier);
  return [path, path.replace(/\.js$/, ".ts"), `${path}.ts`, `${path}/index.ts`].find((candidate) =>
    paths.has(candidate),
  );
}
