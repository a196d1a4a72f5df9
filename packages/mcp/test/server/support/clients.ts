/** Official clients of both generations of the protocol, as hosts use them. */
import {
  Client,
  type ClientOptions,
  type ElicitResult,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

/** The handshake of 2025, and the requests without a session of 2026. */
export type Generation = "2025" | "2026";

export interface ClientParts {
  readonly generation?: Generation;
  /** What the person does whom the client asks; a client without it cannot ask. */
  readonly person?: (asked: {
    readonly message: string;
    readonly requestedSchema: unknown;
  }) => ElicitResult | Promise<ElicitResult>;
}

function clientOf({ generation = "2026", person }: ClientParts): Client {
  const options: ClientOptions = {
    capabilities: person === undefined ? {} : { elicitation: {} },
    versionNegotiation: { mode: generation === "2025" ? "legacy" : { pin: "2026-07-28" } },
  };
  const client = new Client({ name: "host", version: "1.0.0" }, options);
  if (person !== undefined)
    client.setRequestHandler("elicitation/create", ({ params }) => person(params as Parameters<typeof person>[0]));
  return client;
}

/** A client over HTTP. */
export async function overHttp(
  { url, token }: { readonly url: string; readonly token: string | undefined },
  parts: ClientParts = {},
): Promise<Client> {
  const client = clientOf(parts);
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
  );
  return client;
}

/** A client that starts its server. */
export async function overStdio(
  script: URL,
  env: Readonly<Record<string, string>>,
  parts: ClientParts = {},
): Promise<{ readonly client: Client; readonly pid: number }> {
  const client = clientOf(parts);
  const transport = new StdioClientTransport({ command: process.execPath, args: [script.pathname], env: { ...env } });
  await client.connect(transport);
  return { client, pid: transport.pid ?? 0 };
}
