// One Adblock engine for Node, driven by lines on standard input (scripts/bench/adblock_peers.py).
//   node peer.mjs ubo-core|ghostery PUBLIC-SUFFIX-LIST REQUESTS LIST...
// Answers "round" with the CPU seconds of one pass over all requests, "verdicts" with 0 or 1 for each, "memory" with its RSS.
import fs from 'node:fs';
import readline from 'node:readline';

const [name, suffixFile, requestFile, ...lists] = process.argv.slice(2);
const requests = fs.readFileSync(requestFile, 'utf8').trim().split('\n').map(line => JSON.parse(line));
const suffixes = fs.readFileSync(suffixFile, 'utf8');
const texts = lists.map(list => fs.readFileSync(list, 'utf8'));
const UBO_TYPES = { document: 'main_frame', subdocument: 'sub_frame' };

function cpuSeconds(since) {
    const { user, system } = process.cpuUsage(since);
    return (user + system) / 1e6;
}

// Each returns a function (request) → whether it is blocked, which takes plain strings and does all parsing itself.
const ENGINES = {
    async ghostery() {
        const { FiltersEngine, Request } = await import('@ghostery/adblocker');
        const engine = FiltersEngine.parse(texts.join('\n'), { loadCosmeticFilters: false });
        return ({ url, source, type }) => engine.match(Request.fromRawDetails({ url, sourceUrl: source, type })).match;
    },
    async 'ubo-core'() {
        // Its npm build loads no public suffix list by itself: every other host would count as a third party.
        const { StaticNetFilteringEngine, pslInit } = await import('@gorhill/ubo-core');
        pslInit(suffixes);
        const engine = await StaticNetFilteringEngine.create({ noPSL: true });
        await engine.useLists(texts.map((raw, number) => ({ name: `list${number}`, raw })));
        return ({ url, source, type }) => engine.matchRequest({ url, originURL: source, type: UBO_TYPES[type] ?? type }) === 1;
    },
};

const beforeLoading = process.cpuUsage();
const blocks = await ENGINES[name]();
console.log(JSON.stringify({ load_s: cpuSeconds(beforeLoading) }));

const COMMANDS = {
    round() {
        const start = process.cpuUsage();
        let blocked = 0;
        for (const request of requests) blocked += blocks(request);
        return { cpu_s: cpuSeconds(start), blocked };
    },
    verdicts: () => requests.map(request => Number(blocks(request))),
    memory: () => ({ rss_mb: process.memoryUsage().rss / 1e6 }),
};
for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(COMMANDS[line.trim()]()));
}
