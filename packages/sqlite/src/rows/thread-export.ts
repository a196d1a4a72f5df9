/** Export of a thread: all rows of the thread, each verified. */
import { listGraphVersions, type NamespaceExport, storeRules, type ThreadExport } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId } from "../file/schema.ts";
import type { NamespaceRow } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import { threadHeadCheckpoint, threadHeadSeq, threadHeadTime } from "../read/thread-head.ts";
import type { Artifacts } from "../write/artifacts.ts";
import type { PrunedRanges } from "../write/pruned-ranges.ts";
import { ThreadDetailRows } from "./thread-details.ts";

interface ThreadColumns {
  readonly keySalt: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly headBranch: string;
  readonly seq: number;
  readonly checkpoint: number;
  readonly run: string | null;
  readonly graph: string | null;
  readonly version: number | null;
  readonly shape: string | null;
}

/** Creates the reader of thread exports; call the reader inside a single transaction. */
export function createThreadExporter(
  db: Database,
  {
    reader,
    prunedRanges,
    artifacts,
  }: { readonly reader: Reader; readonly prunedRanges: PrunedRanges; readonly artifacts: Artifacts },
): (thread: string, bodies?: "include" | "omit") => ThreadExport {
  const details = new ThreadDetailRows(db);
  const head = db.prepare<[string], ThreadColumns>(
    "SELECT t.salt AS keySalt, t.created AS createdAt, t.head AS headBranch, " +
      threadHeadTime +
      " AS updatedAt, " +
      threadHeadSeq +
      " AS seq, " +
      threadHeadCheckpoint +
      " AS checkpoint," +
      " (SELECT r.id FROM runs r WHERE r.key = t.run) AS run, g.name AS graph, g.version, g.shape" +
      " FROM threads t LEFT JOIN graphs g ON g.key = t.graph WHERE t.id = ?",
  );

  function exportNamespace(thread: string, namespace: NamespaceRow): NamespaceExport {
    const { name } = namespace;
    return {
      name,
      from: namespace.origin ?? undefined,
      run: namespace.run === null ? undefined : reader.runs.get(namespace.run)?.id,
      checkpoints: reader.checkpoints.list(thread, namespace, 0, maxCheckpointId),
      prunedRanges: prunedRanges.list({ thread, namespace, cipher: reader.ciphers.get(thread) }),
      effects: reader.effects.list(thread, name),
      interrupts: reader.interrupts.list(thread, name),
      awaited: reader.interrupts.listAwaited(namespace),
      timers: reader.timers.list({ thread }).filter(({ branch }) => branch === name),
      inbox: reader.inbox.list(thread, name),
    };
  }

  function listRequests(thread: string): Pick<ThreadExport, "requests"> {
    const requests = reader.requests.list({ id: thread, cipher: reader.ciphers.get(thread) }, "all");
    return requests.length === 0 ? {} : { requests };
  }

  return (thread, bodies = "include") => {
    const found = head.get(thread);
    if (found === undefined) throw storeRules.createUnknownThreadError(thread);
    const { graph, version, shape, run, ...rest } = found;
    const writtenBy = graph === null || version === null || shape === null ? undefined : { graph, version, shape };
    const namespaces = reader.namespaces.list(thread).map((namespace) => exportNamespace(thread, namespace));
    return {
      id: thread,
      ...details.get(thread, reader.ciphers.get(thread)).details,
      ...rest,
      run: run ?? undefined,
      writtenBy,
      outlines: listGraphVersions({ namespaces, writtenBy }).flatMap((each) => {
        const outline = reader.outlines.get(each);
        return outline === undefined ? [] : [{ ...each, outline }];
      }),
      namespaces,
      runs: reader.runs.listOfThread(thread),
      ...listRequests(thread),
      events: reader.events.listDurable(thread),
      artifacts: artifacts.listExports(thread, bodies),
    };
  };
}
