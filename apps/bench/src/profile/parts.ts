/** Where the time of a profile goes: each frame belongs to one part of the work, by the file that it is in or by its name. */

/** What is read of a profile of V8. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** The node that was at work, and the microseconds since the sample before. */
  readonly samples?: readonly number[] | undefined;
  readonly timeDeltas?: readonly number[] | undefined;
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[] | undefined;
}

/** The parts, in the order in which they are shown. */
export const parts = [
  "SQLite: begin and commit",
  "SQLite: writing rows",
  "SQLite: reading rows",
  "the store",
  "encoding and copies",
  "sums and hashes",
  "machines",
  "supersteps and tasks",
  "tools and agents",
  "schemas",
  "event loop and timers",
  "collector",
  "rest",
] as const;

export type Part = (typeof parts)[number];

/** `left out` is the work of measuring, and waiting. */
type Belongs = Part | "left out";

/** The first that fits counts; a frame that none fits belongs where its caller does. A frame is its function and its file. */
const rules: readonly (readonly [frame: RegExp, part: Belongs])[] = [
  [/^\(idle\)|^post node:inspector/, "left out"],
  [/^\(garbage collector\)/, "collector"],
  [/^\((program|root)\)/, "rest"],
  [/^(transaction) .*profile\/named-statements/, "SQLite: begin and commit"],
  [/^(change) .*profile\/named-statements/, "SQLite: writing rows"],
  [/^(query) .*profile\/named-statements/, "SQLite: reading rows"],
  [/^structuredClone /, "encoding and copies"],
  [/ node:internal\/crypto|crc32|sqlite\/src\/row-sums|core\/src\/run\/args-digest/, "sums and hashes"],
  [/^\w*([hH]ash|[sS]um|[dD]igest)\w* .*(sqlite|core)\/src/, "sums and hashes"],
  [/core\/src\/(state\/|base\/json|checkpoint\/(saved-state|row-shapes|merged-deltas))/, "encoding and copies"],
  [/sqlite\/src\/(sealed-rows|rows|folded-effects|keys)/, "encoding and copies"],
  [/(sqlite\/src|core\/src\/checkpoint|better-sqlite3)\//, "the store"],
  [
    /core\/src\/(compile\/|run\/(graph-kernel|kernel|kernel-of|part-table|regions|\w+-parts)\.)|node_modules\/xstate/,
    "machines",
  ],
  [/node_modules\/zod|core\/src\/base\/schema/, "schemas"],
  [
    /agent\/src|core\/src\/(tool|model)\/|core\/src\/run\/\w*-?(call|tool|model|hook|hooks|turns)\w*\b/,
    "tools and agents",
  ],
  [/core\/src\//, "supersteps and tasks"],
  [/node:(internal\/)?(timers|process\/task_queues|async_hooks|events|event_target|abort)/, "event loop and timers"],
  [/apps\/bench\/src\//, "rest"],
];

/** The microseconds that each part took; nothing of what was left out. */
export function timeByPart({ nodes, samples = [], timeDeltas = [] }: CpuProfile): ReadonlyMap<Part, number> {
  const partOf = belongings(nodes);
  const times = new Map<Part, number>();
  for (const [index, id] of samples.entries()) {
    const part = partOf.get(id) ?? "rest";
    if (part !== "left out") times.set(part, (times.get(part) ?? 0) + (timeDeltas[index] ?? 0));
  }
  return times;
}

/** The functions that took the most themselves, with their share. */
export function hottest({ nodes, samples = [], timeDeltas = [] }: CpuProfile, most: number): readonly Hot[] {
  const partOf = belongings(nodes);
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const times = new Map<string, number>();
  let all = 0;
  for (const [index, id] of samples.entries()) {
    const name = names.get(id) ?? "";
    const took = timeDeltas[index] ?? 0;
    if (partOf.get(id) === "left out") continue;
    all += took;
    if (name !== "") times.set(name, (times.get(name) ?? 0) + took);
  }
  return [...times]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, most)
    .map(([name, took]) => ({ name, share: took / all }));
}

export interface Hot {
  readonly name: string;
  readonly share: number;
}

/** The function and its file; nothing for what has neither. */
function nameOf({ functionName, url }: ProfileNode["callFrame"]): string {
  const file = url.split("/").slice(-2).join("/");
  return functionName === "" || file === "" || url.includes("/profile/") ? "" : `${functionName} (${file})`;
}

function belongings(nodes: readonly ProfileNode[]): ReadonlyMap<number, Belongs> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map<number, Belongs>();
  const visit = (node: ProfileNode, caller: Belongs): void => {
    const { functionName, url } = node.callFrame;
    const frame = `${functionName} ${url}`;
    const own = rules.find(([fits]) => fits.test(frame))?.[1] ?? caller;
    // What is left out takes with it what it calls, and a statement of SQLite the native code below it.
    const part = caller === "left out" ? caller : own;
    found.set(node.id, part);
    for (const id of node.children ?? []) {
      const child = byId.get(id);
      if (child !== undefined) visit(child, part);
    }
  };
  const [root] = nodes;
  if (root !== undefined) visit(root, "rest");
  return found;
}
