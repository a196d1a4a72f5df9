/** A store with crash points before, inside and after each commit, named after the content of the commit. */
import { crashPoint } from "@statewright/testing";
import type { Store } from "statewright";

type Commit = Parameters<Store["commit"]>[0];

/**
 * The points are `before …`, `inside …`, `after …` (durable, not yet reported) and `told …`; a repeated name is
 * numbered.
 */
export function createStoreWithPoints(inner: Store, point: (name: string) => void = crashPoint): Store {
  const seen = new Map<string, number>();
  return {
    ...inner,
    commit: (commit, onCommitted) => {
      const name = getName(commit);
      const times = (seen.get(name) ?? 0) + 1;
      seen.set(name, times);
      const own = times === 1 ? name : `${name} (${times})`;
      point(`before ${own}`);
      inner.commit(
        { ...commit, events: new EventsWithPoint(commit.events ?? [], () => point(`inside ${own}`)) },
        (failure, queued) => {
          point(`after ${own}`);
          onCommitted(failure, queued);
          point(`told ${own}`);
        },
      );
    },
  };
}

/** A store writes the facts of a commit last: after their iteration the store is inside the transaction. */
class EventsWithPoint extends Array<NonNullable<Commit["events"]>[number]> {
  constructor(events: NonNullable<Commit["events"]>, point: () => void) {
    super();
    this.push(...events);
    Object.defineProperty(this, Symbol.iterator, {
      value: function* () {
        yield* events;
        point();
      },
    });
  }
}

/** Most important content of a commit: the other content depends on timing. */
function getName({ run, checkpoint, effects = [], interrupts = [], release }: Commit): string {
  if (checkpoint !== undefined) return `checkpoint ${checkpoint.row.nodes.join(" ") || checkpoint.row.source}`;
  const [question] = interrupts;
  if (question !== undefined) return `${question.answer === undefined ? "question" : "answer"} ${question.key}`;
  const calls = effects.filter(({ kind }) => kind === "tool");
  const call = calls.find(({ state }) => state !== "started") ?? calls[0];
  if (call !== undefined) return `${call.state === "started" ? "start" : "result"} ${call.key}`;
  return run === undefined ? (release === true ? "release" : "rows") : `run ${run.status}`;
}
