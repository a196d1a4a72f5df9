/** Progress: what a call says while it works, as notifications to the client that asked for them. */
import type { ServerContext } from "@modelcontextprotocol/server";
import type { RunEvent } from "@statewright/core";

/** Tells the client of one call what is being done. */
export interface Progress {
  /** A line; of those that come faster than they are sent, the newest. */
  readonly tell: (line: string) => void;
  /** Resolves when what was told is sent: nothing follows the result. */
  readonly sent: () => Promise<void>;
}

/** Progress for the request at hand; nothing where its client did not ask for any. */
export function progressOf({ mcpReq }: ServerContext): Progress | undefined {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let next: string | undefined;
  let count = 0;
  let sending: Promise<void> | undefined;
  const send = async (): Promise<void> => {
    while (next !== undefined) {
      const message = next;
      next = undefined;
      count += 1;
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: count, message } });
    }
    sending = undefined;
  };
  return {
    tell: (line) => {
      next = line.slice(0, longestLine);
      sending ??= send().catch(clientHasGone);
    },
    sent: async () => sending,
  };
}

const longestLine = 2_000;

function clientHasGone(): void {
  // The signal of its request tells; what it asked for ends by that.
}

/** What an event of a tool or a node says to people who wait; most say nothing. */
export function lineOf(event: RunEvent): string | undefined {
  switch (event.type) {
    case "tool.progress":
      return event.label === undefined ? event.text : `${event.label}: ${event.text}`;
    case "node.progress":
      return event.text;
    case "tool.update": {
      const { content } = event.partial;
      if (typeof content === "string") return content;
      return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("") || undefined;
    }
    default:
      return undefined;
  }
}

/** What an event of a graph says: what its nodes say, and that a superstep is done. */
export function lineOfGraph(event: RunEvent): string | undefined {
  if (event.type !== "step.committed") return lineOf(event);
  return event.within !== undefined || event.nodes.length === 0 ? undefined : `${event.nodes.join(", ")} done`;
}
