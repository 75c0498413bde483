// The refusal with the caller's id, as far as a script can: the id as the parser reads it.
function refused(request) {
    let id = null;
    try {
        const call = JSON.parse(request.requestText);
        id = call.id === undefined ? null : call.id;
    } catch (error) {
        id = null;
    }
    request.headersOut['Content-Type'] = 'application/json';
    request.return(400, JSON.stringify({
        jsonrpc: '2.0',
        id: id,
        error: { code: -32009, message: 'this A2A version is not supported at this endpoint' },
    }));
}

export default { refused };
