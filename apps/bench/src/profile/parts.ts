/** Time of a profile by part: each frame belongs to one part of the work, by its file or its function name. */

/** Used fields of a V8 profile. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** Ids of the sampled nodes, and the microseconds since the previous sample. */
  readonly samples?: readonly number[] | undefined;
  readonly timeDeltas?: readonly number[] | undefined;
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[] | undefined;
}

/** Parts, in display order. */
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

/** `left out` is measurement overhead and idle time. */
type PartOrExcluded = Part | "left out";

/**
 * The first matching rule decides. A frame without a matching rule belongs to the part of its caller. The pattern
 * matches function name and file.
 */
const rules: readonly (readonly [frame: RegExp, part: PartOrExcluded])[] = [
  [/^\(idle\)|^post node:inspector/, "left out"],
  [/^\(garbage collector\)/, "collector"],
  [/^\((program|root)\)/, "rest"],
  [/^(transaction) .*profile\/named-statements/, "SQLite: begin and commit"],
  [/^(change) .*profile\/named-statements/, "SQLite: writing rows"],
  [/^(query) .*profile\/named-statements/, "SQLite: reading rows"],
  [/^structuredClone /, "encoding and copies"],
  [/ node:internal\/crypto|crc32|sqlite\/src\/rows\/row-sums|core\/src\/run\/journal\/args-digest/, "sums and hashes"],
  [/^\w*([hH]ash|[dD]igest|Sums?(?![a-z]))\w* .*(sqlite|core)\/src/, "sums and hashes"],
  [/core\/src\/(state\/|base\/json|checkpoint\/codec\/)/, "encoding and copies"],
  [/sqlite\/src\/(encryption\/encrypted-rows|rows\/(rows|folded-effects)\.)/, "encoding and copies"],
  [/(sqlite\/src|core\/src\/(checkpoint|long-term)|better-sqlite3)\//, "the store"],
  [/core\/src\/(compile|run\/kernel)\/|node_modules\/xstate/, "machines"],
  [/node_modules\/zod|core\/src\/base\/schema/, "schemas"],
  [
    /agent\/src|core\/src\/(tool|model)\/|core\/src\/run\/(tool-call|model-call)\/|core\/src\/run\/\w+\/([\w-]*(call|tool|hook)|turns)/,
    "tools and agents",
  ],
  [/core\/src\//, "supersteps and tasks"],
  [/node:(internal\/)?(timers|process\/task_queues|async_hooks|events|event_target|abort)/, "event loop and timers"],
  [/apps\/bench\/src\//, "rest"],
];

/** Returns the microseconds of each part, without excluded frames. */
export function sumTimeByPart({ nodes, samples = [], timeDeltas = [] }: CpuProfile): ReadonlyMap<Part, number> {
  const partById = assignParts(nodes);
  const times = new Map<Part, number>();
  for (const [index, id] of samples.entries()) {
    const part = partById.get(id) ?? "rest";
    if (part !== "left out") times.set(part, (times.get(part) ?? 0) + (timeDeltas[index] ?? 0));
  }
  return times;
}

/** Returns the functions with the most self time, and their share. */
export function listHottest(
  { nodes, samples = [], timeDeltas = [] }: CpuProfile,
  limit: number,
): readonly HotFunction[] {
  const partById = assignParts(nodes);
  const names = new Map(nodes.map(({ id, callFrame }) => [id, formatFrame(callFrame)]));
  const times = new Map<string, number>();
  let all = 0;
  for (const [index, id] of samples.entries()) {
    const name = names.get(id) ?? "";
    const durationUs = timeDeltas[index] ?? 0;
    if (partById.get(id) === "left out") continue;
    all += durationUs;
    if (name !== "") times.set(name, (times.get(name) ?? 0) + durationUs);
  }
  return [...times]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, limit)
    .map(([name, took]) => ({ name, share: took / all }));
}

export interface HotFunction {
  readonly name: string;
  readonly share: number;
}

/** Formats function and file; empty for frames without a function or a file. */
function formatFrame({ functionName, url }: ProfileNode["callFrame"]): string {
  const file = url.split("/").slice(-2).join("/");
  return functionName === "" || file === "" || url.includes("/profile/") ? "" : `${functionName} (${file})`;
}

function assignParts(nodes: readonly ProfileNode[]): ReadonlyMap<number, PartOrExcluded> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map<number, PartOrExcluded>();
  const visit = (node: ProfileNode, caller: PartOrExcluded): void => {
    const { functionName, url } = node.callFrame;
    const frame = `${functionName} ${url}`;
    const matched = rules.find(([fits]) => fits.test(frame))?.[1] ?? caller;
    // An excluded frame excludes its callees too. Native code below a SQLite statement belongs to the part of the
    // statement.
    const part = caller === "left out" ? caller : matched;
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
