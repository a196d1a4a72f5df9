/** HTTP proxy before server processes: requests go to its targets in turn. */
import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";

/** Proxy of the gate. */
export interface Balancer {
  readonly url: string;
  /** Requests from now on go to these ports in turn; open ones stay where they are. */
  readonly setTargets: (ports: readonly number[]) => void;
  readonly close: () => Promise<void>;
}

/** Starts a proxy on a free port. */
export async function startBalancer(first: readonly number[]): Promise<Balancer> {
  let targets = first;
  let turn = 0;
  const server = createServer((incoming, outgoing) => {
    const port = targets[turn % targets.length] ?? 0;
    turn += 1;
    forward(port, incoming, outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setTargets: (ports) => {
      targets = ports;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A connection that breaks at one side ends at the other one. */
function forward(port: number, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url, headers } = incoming;
  const options = { host: "127.0.0.1", port, method, path: url, headers, agent: false };
  const sent = sendRequest(options, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    outgoing.flushHeaders();
    response.pipe(outgoing);
    response.once("error", () => outgoing.destroy());
    response.once("aborted", () => outgoing.destroy());
  });
  sent.once("error", () => outgoing.destroy());
  outgoing.once("close", () => sent.destroy());
  incoming.pipe(sent);
}
