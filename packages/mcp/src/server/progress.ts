/** Progress of a call, as notifications to a client that requested them. */
import type { ServerContext } from "@modelcontextprotocol/server";
import type { RunEvent } from "@statewright/core";

/** Progress notifications of a call. */
export interface Progress {
  /** Sends a line. Lines faster than the transport are dropped except the newest. */
  readonly send: (line: string) => void;
  /** Resolves when all lines are sent: no notification may follow the result. */
  readonly flush: () => Promise<void>;
}

/** Creates the progress of a request; undefined if the client requested none. */
export function createProgress({ mcpReq }: ServerContext): Progress | undefined {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let next: string | undefined;
  let count = 0;
  let sending: Promise<void> | undefined;
  const drainLines = async (): Promise<void> => {
    while (next !== undefined) {
      const message = next;
      next = undefined;
      count += 1;
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: count, message } });
    }
    sending = undefined;
  };
  return {
    send: (line) => {
      next = line.slice(0, maxLineLength);
      sending ??= drainLines().catch(ignoreDisconnect);
    },
    flush: async () => sending,
  };
}

const maxLineLength = 2_000;

function ignoreDisconnect(): void {
  // The signal of the request reports the disconnect and aborts the call.
}

/** Returns the progress text of a tool or node event; undefined for most events. */
export function getProgressText(event: RunEvent): string | undefined {
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

/** Returns the progress text of a graph event: progress of nodes, and finished supersteps. */
export function getGraphProgressText(event: RunEvent): string | undefined {
  if (event.type !== "step.committed") return getProgressText(event);
  return event.within !== undefined || event.nodes.length === 0 ? undefined : `${event.nodes.join(", ")} done`;
}
