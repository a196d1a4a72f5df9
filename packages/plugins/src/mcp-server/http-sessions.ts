/** Sessions of clients that open one, as all did before 2026-07-28: each has a connection of its own, and one client only. */
import { randomUUID } from "node:crypto";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { McpCaller } from "./caller.ts";
import { type Connection, connectionFor, type Served } from "./connection.ts";
import { refused } from "./http-access.ts";

/** Sessions over HTTP. */
export interface Sessions {
  /** Answer a request of a session, or one that opens it. */
  readonly serve: (request: Request, message: unknown, caller: McpCaller) => Promise<Response>;
  readonly count: () => number;
  readonly close: () => Promise<void>;
}

interface Session extends Connection {
  readonly caller: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  usedAt: number;
}

/** So many sessions there are at most, of all clients. */
const mostSessions = 1_024;

/** Keep sessions. */
export function httpSessions(served: Served): Sessions {
  const { limits, world } = served;
  const sessions = new Map<string, Session>();
  /** The clients of sessions that are being opened: many may come at the same moment. */
  const opening: string[] = [];

  async function serve(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    // The session of another client is none.
    if (id !== null && known?.caller !== caller.id) return refused(404, "Session not found");
    if (known === undefined) return open(request, message, caller);
    known.usedAt = world.clock.monotonic();
    return known.transport.handleRequest(request, { parsedBody: message });
  }

  async function open(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    if (!isOpening(message)) return refused(400, "Bad Request: Mcp-Session-Id header is required");
    if (!(await makeRoom(caller))) return refused(503, "Too many sessions: end one, or come again later");
    try {
      return await opened(request, message, caller);
    } finally {
      opening.splice(opening.indexOf(caller.id), 1);
    }
  }

  async function opened(request: Request, message: unknown, caller: McpCaller): Promise<Response> {
    const connection = connectionFor(served, caller);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, { ...connection, caller: caller.id, transport, usedAt: world.clock.monotonic() });
      },
      onsessionclosed: (id) => {
        sessions.delete(id);
      },
    });
    await connection.server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: message });
    if (transport.sessionId === undefined) await connection.server.close();
    return response;
  }

  /**
   * Whether there is room for one more session of a client. What nobody has used for long goes; where a client has too many,
   * its oldest without a call at work does, and whoever comes back to that opens another, as the protocol has it. What there
   * is room for is counted as `opening`.
   */
  async function makeRoom(caller: McpCaller): Promise<boolean> {
    const idleSince = world.clock.monotonic() - limits.sessionIdleMs;
    const resting = [...sessions].filter(([, { calls }]) => calls() === 0).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [id, session] of resting) if (session.usedAt <= idleSince) await end(id, session);
    const own = [...[...sessions.values()].map((session) => session.caller), ...opening].filter(
      (id) => id === caller.id,
    );
    const isFull = own.length >= limits.sessions || sessions.size + opening.length >= mostSessions;
    const oldest = isFull
      ? resting.find(([id, session]) => session.caller === caller.id && sessions.has(id))
      : undefined;
    if (isFull && oldest === undefined) return false;
    opening.push(caller.id);
    if (oldest !== undefined) await end(...oldest);
    return true;
  }

  async function end(id: string, session: Session): Promise<void> {
    sessions.delete(id);
    await session.server.close();
  }

  return {
    serve,
    count: () => sessions.size,
    close: async () => {
      const open = [...sessions.values()];
      sessions.clear();
      await Promise.all(open.map(({ server }) => server.close()));
    },
  };
}

function isOpening(message: unknown): boolean {
  return typeof message === "object" && message !== null && Reflect.get(message, "method") === "initialize";
}
