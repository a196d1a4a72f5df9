/** Artifacts in memory: those of the store in memory, and a place for them without any store. */
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  inRange,
  isListed,
} from "../../tool/artifacts/artifact.ts";
import { checkFilter, checkRange } from "../rules.ts";

/** The artifacts of one thread. */
export interface ArtifactsOfThread {
  rows: ArtifactRow[];
  readonly bodies: Map<string, Uint8Array>;
}

/** Artifacts that live as long as this process, beside a run that has no store or a store of another kind. */
export function memoryArtifacts(): ArtifactStore {
  const threads = new Map<string, ArtifactsOfThread>();
  return {
    put: async (thread, artifact) => {
      const kept = threads.get(thread) ?? noArtifacts();
      threads.set(thread, kept);
      putArtifact(kept, artifact);
    },
    ...keptIn((thread) => threads.get(thread)),
  };
}

/** How artifacts are read and removed, wherever those of a thread stand. */
export function keptIn(
  find: (thread: string) => ArtifactsOfThread | undefined,
): Pick<ArtifactStore, "list" | "read" | "delete"> {
  return {
    list: async (thread, filter = {}) => {
      checkFilter("artifacts", filter, ["run", "key"]);
      return (find(thread)?.rows ?? []).filter((row) => isListed(row, filter)).slice(0, filter.limit);
    },
    read: async (thread, key, range) => {
      if (range !== undefined) checkRange(range);
      const body = find(thread)?.bodies.get(key);
      return body === undefined ? undefined : inRange(body, range ?? { offset: 0, limit: body.length });
    },
    delete: async (thread, key) => {
      const kept = find(thread);
      if (kept?.bodies.delete(key) !== true) return false;
      kept.rows = kept.rows.filter((row) => row.key !== key);
      return true;
    },
  };
}

/** Keep an artifact; its body only where no other call gave the same. */
export function putArtifact(kept: ArtifactsOfThread, { row, body }: ArtifactWrite): void {
  kept.rows.push(row);
  if (!kept.bodies.has(row.key)) kept.bodies.set(row.key, body);
}

export function noArtifacts(): ArtifactsOfThread {
  return { rows: [], bodies: new Map() };
}
