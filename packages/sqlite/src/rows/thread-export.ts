/** A thread as an image: everything that the file has of it, checked row by row. */
import { type LineImage, storeRules, type ThreadImage } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { largestCheckpoint } from "../file/schema.ts";
import type { Line, Reader } from "../read/reader.ts";
import { reachedAt, reachedCheckpoint, reachedSeq } from "../read/thread-head.ts";
import type { Artifacts } from "../write/artifacts.ts";
import type { Cuts } from "../write/pruned-ranges.ts";

interface ThreadHead {
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly headBranch: string;
  readonly seq: number;
  readonly checkpoint: number;
  readonly run: string | null;
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

/** What reads images; to be asked inside one transaction. */
export function createImages(
  db: Database,
  { reader, cuts, artifacts }: { readonly reader: Reader; readonly cuts: Cuts; readonly artifacts: Artifacts },
): (thread: string) => ThreadImage {
  const head = db.prepare<[string], ThreadHead>(
    "SELECT t.created AS createdAt, t.head AS headBranch, " +
      reachedAt +
      " AS updatedAt, " +
      reachedSeq +
      " AS seq, " +
      reachedCheckpoint +
      " AS checkpoint," +
      " (SELECT r.id FROM runs r WHERE r.key = t.run) AS run, g.name AS graph, g.version, g.shape" +
      " FROM threads t JOIN graphs g ON g.key = t.graph WHERE t.id = ?",
  );

  function lineImage(thread: string, line: Line): LineImage {
    const { name } = line;
    return {
      name,
      from: line.origin ?? undefined,
      run: line.run === null ? undefined : reader.run(line.run)?.id,
      checkpoints: reader.own(thread, line, 0, largestCheckpoint),
      cuts: cuts.of({ thread, line, seals: reader.seals(thread) }),
      effects: reader.effects(thread, name),
      interrupts: reader.interrupts(thread, name),
      awaited: reader.awaited(line),
      timers: reader.timers({ thread }).filter(({ branch }) => branch === name),
      letters: reader.letters(thread, name),
    };
  }

  return (thread) => {
    const found = head.get(thread);
    if (found === undefined) throw storeRules.unknownThread(thread);
    const { graph, version, shape, run, ...rest } = found;
    return {
      id: thread,
      ...rest,
      run: run ?? undefined,
      writtenBy: { graph, version, shape },
      lines: reader.lines(thread).map((line) => lineImage(thread, line)),
      runs: reader.ownRuns(thread),
      events: reader.facts(thread),
      artifacts: artifacts.images(thread),
    };
  };
}
