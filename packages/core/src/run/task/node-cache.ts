/** A node's cache at work: a kept result stands in for the body. A cache that fails is a miss; it never fails the run. */

import { describeThrown, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { deepFreeze, describeValue } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { END } from "../../define/edge.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { CacheEntry, NodeCache } from "../../define/node-cache.ts";
import { encodeAround } from "../../state/codec.ts";
import { whenAborted } from "../session/abort.ts";
import type { TaskOutcome } from "../session/returns.ts";
import { placeOf, type Session } from "../session/session.ts";

type Policy = NonNullable<NodeRecord["policy"]["cache"]>;

/** What a cache says of a task: its result, or where to keep the one that the body gives. */
export type Consulted =
  | { readonly kind: "hit"; readonly outcome: TaskOutcome }
  | { readonly kind: "miss"; readonly keep: (outcome: TaskOutcome) => void };

/** Look a task up. Throws when its key cannot be made. */
export async function consultCache(session: Session, task: Task, policy: Policy): Promise<Consulted> {
  const { store } = policy;
  const key = keyOf(session, task, policy);
  const entry = await found(session, task, store, key);
  const outcome = entry === undefined ? undefined : outcomeOf(session, task, entry);
  if (outcome !== undefined) return { kind: "hit", outcome };
  return { kind: "miss", keep: (made) => keep(session, task, policy, key, made) };
}

/** The whole key: graph, version, node, and what its author says. None of the first three may hold a slash. */
function keyOf(session: Session, task: Task, { key }: Policy): string {
  const { name, version } = session.plan.graph;
  const input = task.input === undefined ? undefined : session.control.inputs[task.input];
  const own = madeKey(session, task, () => key(session.state as never, input as never));
  if (typeof own === "string") return `${name}/${version}/${task.node}/${own}`;
  disregardPromises(own);
  throw new StatewrightError("invalid_option", {
    what: `the cache key of the node "${task.node}" is ${describeValue(own)}`,
    next: "Return a text at once",
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}

function madeKey(session: Session, task: Task, make: () => unknown): unknown {
  try {
    return make();
  } catch (cause) {
    throw new StatewrightError("node_failed", {
      what: `the cache key of the node "${task.node}" could not be made: ${describeThrown(cause)}`,
      next: "Mend its cache.key, which gets the state and the input, then resume the thread",
      place: placeOf(session, { node: task.node, task: task.id }),
      cause,
    });
  }
}

/** A run that is cancelled does not wait for a cache. */
function found(session: Session, task: Task, store: NodeCache, key: string): Promise<CacheEntry | undefined> {
  return new Promise((resolve) => {
    const { halt } = session;
    if (halt.aborted) return resolve(undefined);
    const stopListening = whenAborted(halt, () => resolve(undefined));
    Promise.resolve()
      .then(() => store.get(key))
      .then((entry) => {
        const { expiresAt = Number.POSITIVE_INFINITY } = entry ?? {};
        return session.world.clock.now() < expiresAt ? (entry ?? undefined) : undefined;
      })
      .catch((error: unknown) => log(session, task, "could not be read", error))
      .then((entry) => {
        stopListening();
        resolve(entry);
      });
  });
}

function outcomeOf(session: Session, task: Task, { text }: CacheEntry): TaskOutcome | undefined {
  const { graph, nodes } = session.plan;
  try {
    const outcome = deepFreeze(session.codec.decode(text)) as TaskOutcome;
    // The graph may have lost a channel or a node since, under the same version.
    const fits =
      outcome.writes.every(({ channel }) => Object.hasOwn(graph.state.channels, channel)) &&
      outcome.leads.every(({ target }) => target === END || nodes.has(target));
    return fits ? outcome : undefined;
  } catch (error) {
    log(session, task, "holds what cannot be read", error);
    return undefined;
  }
}

/** Keep a result beside the run: nobody waits for it. */
function keep(session: Session, task: Task, { ttlMs, store }: Policy, key: string, outcome: TaskOutcome): void {
  Promise.resolve()
    .then(() => {
      const text = encodeAround(session.codec, lasting(session, outcome), `the result of the node "${task.node}"`);
      return store.put(key, {
        text,
        ...(ttlMs === undefined ? {} : { expiresAt: session.world.clock.now() + ttlMs }),
      });
    })
    .catch((error: unknown) => log(session, task, "did not take a result", error));
}

/**
 * An outcome that fits another state: a draft's patches belong to the value they were made on, so its whole value stands in
 * for them. What lives in the process only cannot be kept.
 */
function lasting(session: Session, { writes, leads }: TaskOutcome): TaskOutcome {
  const { channels } = session.plan.graph.state;
  const unsaved = writes.find((write) => channels[write.channel]?.kind === "untracked");
  if (unsaved !== undefined) throw new TypeError(`the channel "${unsaved.channel}" is untracked and cannot be kept`);
  return {
    writes: writes.map((write) =>
      write.kind === "draft" ? { channel: write.channel, kind: "fold", value: write.value } : write,
    ),
    leads,
  };
}

function log(session: Session, task: Task, what: string, error: unknown): undefined {
  session.world.log("warn", `the cache of the node "${task.node}" ${what}`, {
    task: task.id,
    error: toErrorRecord(error),
  });
  return undefined;
}
