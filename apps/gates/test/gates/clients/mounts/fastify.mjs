// @boundaries-ignore installed by the gate
import { getRequestListener } from "@hono/node-server";
// @boundaries-ignore installed by the gate
import Fastify from "fastify";
import { server } from "./server.mjs";

const app = Fastify();
const listener = getRequestListener(server.fetch);
app.removeAllContentTypeParsers();
app.addContentTypeParser("*", (_request, _body, done) => done(null));
app.all("/agents/*", (request, reply) => void listener(request.raw, reply.hijack().raw));
await app.listen({ port: 3000, host: "127.0.0.1" });
