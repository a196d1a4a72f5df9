import { server } from "./server.mjs";

await server.listen({ port: 3000 });
