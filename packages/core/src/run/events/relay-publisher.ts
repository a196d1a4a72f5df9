/** Publishes the events of one run at work to a relay. */
import type { World } from "../../base/world.ts";
import type { Relay, RelayFrame } from "./relay.ts";
import type { RunEvent } from "./run-event.ts";

/** Run at work: its thread and claim, and the newest durable event. */
export interface PublishedRun extends Pick<RelayFrame, "run" | "branch" | "epoch" | "seq"> {
  readonly thread: string;
  readonly world: World;
}

/** Publisher of the events of a run. */
export interface RelayPublisher {
  readonly isInUse: () => boolean;
  /** Publishes an event. A durable event is sent as its number: readers load it from the store. */
  readonly publish: (event: RunEvent, durability: "durable" | "transient") => void;
  readonly end: () => void;
}

/** Creates a publisher. Contract: an error of the relay is logged once and never reaches the run. */
export function createRelayPublisher(
  relay: Relay,
  { thread, run, branch, epoch, seq, world }: PublishedRun,
): RelayPublisher {
  const source = `${run}.${epoch}`;
  let index = 0;
  let newestSeq = seq;
  let hasFailed = false;

  function send(parts: Pick<RelayFrame, "event" | "committed" | "ended">): void {
    index += 1;
    try {
      relay.publish(thread, [{ source, run, branch, epoch, index, seq: newestSeq, ...parts }]);
    } catch (error) {
      if (!hasFailed) world.log("warn", "the relay threw; readers may miss text until its commit", { thread, error });
      hasFailed = true;
    }
  }

  return {
    isInUse: () => relay.isInUse?.() !== false,
    publish: (event, durability) => {
      // Its changes are those of `step.committed`, which is durable.
      if (event.type === "transition.taken") return;
      if (durability === "transient") return send({ event });
      newestSeq = Math.max(newestSeq, event.seq);
      send(event.type === "step.committed" ? { committed: event.withinId ?? "" } : {});
    },
    end: () => {
      if (index > 0) send({ ended: true });
    },
  };
}
